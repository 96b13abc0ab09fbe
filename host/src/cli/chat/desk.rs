//! The gate asks at one place for as long as the program runs; the sessions that answer come and go.

use std::sync::{Mutex, PoisonError};

use sallyport_contract::{Answer, ApprovalRequest, BoxFuture, Consent};
use sallyport_session::{Approvals, Desk, NobodyToAsk, approval};

/// Where the gate asks: at the desk of the present session.
#[derive(Debug, Default)]
pub(super) struct Reception(Mutex<Option<Desk>>);

impl Reception {
    /// Sends questions to a new session from here on; what is returned is for it.
    pub(super) fn redirect(&self) -> Approvals {
        let (desk, approvals) = approval::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(desk);
        approvals
    }

    fn desk(&self) -> Option<Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Consent for Reception {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            match self.desk() {
                Some(desk) => desk.ask(request).await,
                None => NobodyToAsk.ask(request).await,
            }
        })
    }
}
