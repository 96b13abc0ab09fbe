//! Connects the gate, which lives as long as the program, to the current session, which answers its
//! questions.

use std::sync::{Mutex, PoisonError};

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, BoxFuture, Consent};
use sallyport_session::{ApprovalSender, PendingApprovals, UnattendedConsent, approval};

/// Forwards the gate's questions to the current session.
#[derive(Debug, Default)]
pub(super) struct ApprovalRouter(Mutex<Option<ApprovalSender>>);

impl ApprovalRouter {
    /// Sends all further questions to a new session, through the returned channel.
    pub(super) fn redirect_questions(&self) -> PendingApprovals {
        let (sender, approvals) = approval::approval_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        approvals
    }

    fn current_sender(&self) -> Option<ApprovalSender> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Consent for ApprovalRouter {
    fn ask_user(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            match self.current_sender() {
                Some(sender) => sender.ask_user(request).await,
                None => UnattendedConsent.ask_user(request).await,
            }
        })
    }
}
