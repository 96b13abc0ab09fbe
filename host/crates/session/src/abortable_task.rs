//! Separate tasks for code of other crates, so that a bug in it costs one call.

use std::{any::Any, sync::Arc};

use sallyport_contract::{
    Admission, CallFailure, CallReport, FailureKind, Outcome, RequestedCall, Toolbox,
};
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument as _;

/// A task that is aborted when its owner is dropped.
pub(super) struct AbortableTask<T>(JoinHandle<T>);

impl<T> AbortableTask<T> {
    /// Waits for its end. Cancel-safe: dropping the future loses nothing.
    pub(super) async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }

    /// Aborts it and waits until it is gone.
    pub(super) async fn abort_and_wait(mut self) {
        self.0.abort();
        // Its result no longer matters.
        let _ = self.join().await;
    }
}

impl<T> Drop for AbortableTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Passes a call through the gate.
pub(super) fn spawn_admission(
    toolbox: &Arc<dyn Toolbox>,
    call: RequestedCall,
) -> AbortableTask<Result<Admission, Box<CallReport>>> {
    AbortableTask(tokio::spawn(Arc::clone(toolbox).admit_call(call).in_current_span()))
}

/// The report of a call whose task panicked or was aborted.
pub(super) fn failure_report(error: JoinError) -> CallReport {
    match error.try_into_panic() {
        Err(_) => Outcome::Cancelled.into(),
        Ok(panic) => {
            let message = "the host failed while it handled this call";
            let failure = CallFailure::new(FailureKind::Internal, message);
            Outcome::Failed(failure.with_detail(panic_text(&*panic))).into()
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a text"))
}
