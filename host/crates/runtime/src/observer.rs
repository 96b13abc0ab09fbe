//! Observers of every call and every run in a role, from the decision to the end.

use std::sync::Arc;

use sallyport_contract::{Admitted, BoxFuture, CallReport, ToolCall, ToolId, ToolSpec, Toolbox};

/// Observes calls and runs in a role, in addition to the audit.
pub trait RunObserver: Send + Sync {
    /// The gate has decided. `Err` contains the report of a refusal.
    fn decided(&self, call: &ToolCall, result: &Result<Admitted, Box<CallReport>>);

    /// A call or a run has ended.
    fn ended(&self, tool: &ToolId, report: &CallReport);
}

/// A toolbox whose calls are observed.
pub(crate) struct ObservedToolbox {
    pub(crate) inner: Arc<dyn Toolbox>,
    pub(crate) observer: Arc<dyn RunObserver>,
}

impl Toolbox for ObservedToolbox {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let result = self.inner.admit(call.clone()).await;
            self.observer.decided(&call, &result);
            result
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let tool = call.tool().clone();
            let report = self.inner.run(call).await;
            self.observer.ended(&tool, &report);
            report
        })
    }
}
