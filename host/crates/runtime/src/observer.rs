//! Observers of every call and every run in a role, from the decision to the end.

use std::sync::Arc;

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallReport, RequestedCall, ToolDescriptor, ToolId, Toolbox,
};

/// Observes calls and runs in a role, in addition to the audit.
pub trait RunObserver: Send + Sync {
    /// The gate has decided. `Err` contains the report of a refusal.
    fn on_decision(&self, call: &RequestedCall, result: &Result<AdmittedCall, Box<CallReport>>);

    /// A call or a run has ended.
    fn on_run_ended(&self, tool: &ToolId, report: &CallReport);
}

/// A toolbox whose calls are observed.
pub(crate) struct ObservedToolbox {
    pub(crate) inner: Arc<dyn Toolbox>,
    pub(crate) observer: Arc<dyn RunObserver>,
}

impl Toolbox for ObservedToolbox {
    fn tools(&self) -> &[ToolDescriptor] {
        self.inner.tools()
    }

    fn admit_call(
        &self,
        call: RequestedCall,
    ) -> BoxFuture<'_, Result<AdmittedCall, Box<CallReport>>> {
        Box::pin(async move {
            let result = self.inner.admit_call(call.clone()).await;
            self.observer.on_decision(&call, &result);
            result
        })
    }

    fn run_call(&self, call: AdmittedCall) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let tool = call.tool().clone();
            let report = self.inner.run_call(call).await;
            self.observer.on_run_ended(&tool, &report);
            report
        })
    }
}
