//! The open sessions of a host: whose they are, and who answers their questions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, BoxFuture, Consent};
use sallyport_session::{ApprovalSender, PendingApprovals, approval};

use crate::gate::GrantDesk;

/// The open sessions, the oldest first.
///
/// A question goes to the session of its call. A call of no open session, such as that of a timer,
/// asks in the session that its user opened last, and if there is none, the consent of the host. A
/// question never goes to another user.
pub(crate) struct SessionDirectory {
    sessions: Mutex<Vec<DirectoryEntry>>,
    host_consent: Arc<dyn Consent>,
    /// The grants of sessions, which end with them.
    grant_desk: Arc<GrantDesk>,
}

/// An open session.
struct DirectoryEntry {
    session_id: String,
    user: String,
    /// Asks the front end of the session. `None` if the consent of the host answers.
    sender: Option<ApprovalSender>,
    number: u64,
}

/// Keeps a session in the directory until it is dropped.
pub(crate) struct DirectoryGuard {
    directory: Arc<SessionDirectory>,
    number: u64,
}

impl SessionDirectory {
    /// Creates a directory without sessions.
    pub(crate) fn new(host_consent: Arc<dyn Consent>, grant_desk: Arc<GrantDesk>) -> Self {
        Self { sessions: Mutex::default(), host_consent, grant_desk }
    }

    /// Adds a session of a user. If its front end answers questions, they come to the returned
    /// receiver; otherwise nothing does.
    pub(crate) fn add_session(
        self: &Arc<Self>,
        session_id: &str,
        user: &str,
        answers_questions: bool,
    ) -> (DirectoryGuard, PendingApprovals) {
        let (sender, approvals) = approval::approval_channel();
        let mut sessions = self.lock_sessions();
        let number = sessions.last().map_or(1, |session| session.number + 1);
        sessions.push(DirectoryEntry {
            session_id: session_id.to_owned(),
            user: user.to_owned(),
            sender: answers_questions.then_some(sender),
            number,
        });
        (DirectoryGuard { directory: Arc::clone(self), number }, approvals)
    }

    /// Returns who answers a question about a call of a user.
    fn find_sender(&self, session_id: &str, user: &str) -> Option<ApprovalSender> {
        let sessions = self.lock_sessions();
        let of_user = || sessions.iter().rev().filter(|session| session.user == user);
        let own = of_user().find(|session| session.session_id == session_id);
        own.or_else(|| of_user().next()).and_then(|session| session.sender.clone())
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<DirectoryEntry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consent for SessionDirectory {
    fn ask_user(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        let context = &request.call.context;
        let sender = self.find_sender(&context.session_id, context.user());
        Box::pin(async move {
            match sender {
                Some(sender) => sender.ask_user(request).await,
                None => self.host_consent.ask_user(request).await,
            }
        })
    }
}

impl Drop for DirectoryGuard {
    fn drop(&mut self) {
        let mut sessions = self.directory.lock_sessions();
        let ended = sessions.iter().position(|session| session.number == self.number);
        let Some(ended) = ended.map(|index| sessions.remove(index)) else { return };
        // A session may be open several times.
        if !sessions.iter().any(|session| session.session_id == ended.session_id) {
            self.directory.grant_desk.end_session(&ended.session_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::poll;
    use sallyport_contract::{ApprovalSubject, Principal, RequestedCall};
    use sallyport_session::UnattendedConsent;

    use super::*;

    fn request(session_id: &str, user: &str) -> ApprovalRequest {
        let principal = Principal { user: user.to_owned(), conversation: None };
        let context = principal.call_context("c".to_owned(), session_id);
        let (tool, arguments) = ("t.asks".parse().unwrap(), "{}".to_owned());
        ApprovalRequest {
            call: RequestedCall { context, tool, arguments },
            subject: ApprovalSubject::Call,
            request: None,
            plugin_version: String::new(),
            plugin_digest: String::new(),
            reason: String::new(),
            rule: None,
            capabilities: Vec::new(),
        }
    }

    /// Asks about a call; returns whether the question waits for a session to answer.
    async fn waits(directory: &SessionDirectory, session_id: &str, user: &str) -> bool {
        match poll!(directory.ask_user(request(session_id, user))) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                assert_eq!(answer, ApprovalAnswer::Nobody);
                false
            }
        }
    }

    fn directory() -> Arc<SessionDirectory> {
        Arc::new(SessionDirectory::new(Arc::new(UnattendedConsent), Arc::default()))
    }

    #[tokio::test]
    async fn a_question_goes_to_the_session_of_its_call() {
        let directory = directory();
        assert!(!waits(&directory, "a", "ann").await, "no session is open");
        let (guard_a, _a) = directory.add_session("a", "ann", true);
        let (_guard_silent, _silent) = directory.add_session("silent", "ann", false);
        assert!(waits(&directory, "a", "ann").await);
        assert!(!waits(&directory, "silent", "ann").await, "its front end answers nothing");
        drop(guard_a);
        assert!(!waits(&directory, "a", "ann").await);
    }

    #[tokio::test]
    async fn a_question_of_no_open_session_goes_to_the_newest_of_its_user() {
        let directory = directory();
        let (_guard_old, old) = directory.add_session("old", "ann", true);
        let (guard_new, _new) = directory.add_session("new", "ann", true);
        let (_guard_ben, _ben) = directory.add_session("ben", "ben", true);
        assert!(waits(&directory, "timer", "ann").await);
        assert!(!waits(&directory, "timer", "eve").await, "no session of hers is open");
        // The receiver of the oldest is gone, so a question to it is answered at once.
        drop((guard_new, old));
        assert!(!waits(&directory, "timer", "ann").await, "it does not go to ben");
    }

    #[tokio::test]
    async fn a_question_of_one_user_never_goes_to_a_session_of_another() {
        let directory = directory();
        let (_guard_ben, _ben) = directory.add_session("shared", "ben", true);
        assert!(!waits(&directory, "shared", "ann").await, "the session is ben's");
        let (_guard_ann, _ann) = directory.add_session("ann's", "ann", true);
        assert!(waits(&directory, "shared", "ann").await, "her own session answers");
    }
}
