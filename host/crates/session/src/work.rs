//! Separate tasks for code of other crates, so that a bug in it costs one call.

use std::{any::Any, sync::Arc};

use sallyport_contract::{Admitted, CallReport, Failure, FailureKind, Outcome, ToolCall, Toolbox};
use tokio::task::{JoinError, JoinHandle};

/// A task that is aborted when its owner is dropped.
pub(super) struct Work<T>(JoinHandle<T>);

impl<T> Work<T> {
    /// Waits for its end. Cancel-safe: dropping the future loses nothing.
    pub(super) async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }

    /// Aborts it and waits until it is gone.
    pub(super) async fn end(mut self) {
        self.0.abort();
        // Its result no longer matters.
        let _ = self.join().await;
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Passes a call through the gate.
pub(super) fn admit(
    toolbox: &Arc<dyn Toolbox>,
    call: ToolCall,
) -> Work<Result<Admitted, Box<CallReport>>> {
    let toolbox = Arc::clone(toolbox);
    Work(tokio::spawn(async move { toolbox.admit(call).await }))
}

/// The report of a call whose task panicked or was aborted.
pub(super) fn lost(error: JoinError) -> CallReport {
    match error.try_into_panic() {
        Err(_) => Outcome::Cancelled.into(),
        Ok(panic) => {
            let message = "the host failed while it handled this call";
            let failure = Failure::new(FailureKind::Internal, message);
            Outcome::Failed(failure.with_detail(panic_text(&*panic))).into()
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a text"))
}
