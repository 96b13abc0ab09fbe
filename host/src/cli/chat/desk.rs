//! Connects the gate, which lives as long as the program, to the current session, which answers its
//! questions.

use std::sync::{Mutex, PoisonError};

use sallyport_contract::{Answer, ApprovalRequest, BoxFuture, Consent};
use sallyport_session::{Approvals, Desk, NobodyToAsk, approval};

/// Forwards the gate's questions to the current session.
#[derive(Debug, Default)]
pub(super) struct Reception(Mutex<Option<Desk>>);

impl Reception {
    /// Sends all further questions to a new session, through the returned channel.
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
