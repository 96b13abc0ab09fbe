//! Observers of every call and every run in a role, from the decision to the end.

use sallyport_contract::{AdmittedCall, CallReport, RequestedCall, ToolId};

/// Observes calls and runs in a role, in addition to the audit.
pub trait RunObserver: Send + Sync {
    /// The gate has decided. `Err` contains the report of a refusal.
    fn on_decision(&self, call: &RequestedCall, result: Result<&AdmittedCall, &CallReport>);

    /// A call or a run has ended.
    fn on_run_ended(&self, tool: &ToolId, report: &CallReport);
}
