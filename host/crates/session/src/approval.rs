//! Questions to the user, on their way from the gate to a front end.
//!
//! The toolbox asks through [`Consent`] and knows no session; the session knows no gate. A channel
//! connects the two: the [`ApprovalSender`] goes to the toolbox, the [`PendingApprovals`] to the
//! session. If the other end is gone, the answer is [`ApprovalAnswer::Nobody`], never a yes and
//! never an endless wait.

use std::{
    collections::BTreeMap,
    future::{self, Future},
    task::Poll,
};

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, ApprovalSubject, BoxFuture, Consent};
use tokio::sync::{mpsc, oneshot};

use super::snapshot::OpenQuestion;

/// Questions that may wait for the session; further askers wait. Calls are admitted one after
/// another, so more than a few can only come from running calls.
const QUESTIONS_WAITING_MAX: usize = 16;

/// Creates a desk for askers, and the other end for the session that answers.
pub fn approval_channel() -> (ApprovalSender, PendingApprovals) {
    let (sender, incoming) = mpsc::channel(QUESTIONS_WAITING_MAX);
    (ApprovalSender { sender }, PendingApprovals { incoming, open: BTreeMap::new(), last_id: 0 })
}

/// Where the gate asks. Clones ask the same session.
#[derive(Debug, Clone)]
pub struct ApprovalSender {
    sender: mpsc::Sender<ApprovalQuestion>,
}

impl Consent for ApprovalSender {
    fn ask_user(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let (answer, answer_receiver) = oneshot::channel();
            // Either end may be gone at any moment; then no user can say yes.
            let _ = self.sender.send(ApprovalQuestion { request, answer }).await;
            answer_receiver.await.unwrap_or(ApprovalAnswer::Nobody)
        })
    }
}

/// Consent without a user: every question is answered with [`ApprovalAnswer::Nobody`].
#[derive(Debug, Clone, Copy)]
pub struct UnattendedConsent;

impl Consent for UnattendedConsent {
    fn ask_user(&self, _request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(future::ready(ApprovalAnswer::Nobody))
    }
}

#[derive(Debug)]
struct ApprovalQuestion {
    request: ApprovalRequest,
    answer: oneshot::Sender<ApprovalAnswer>,
}

/// The questions that arrive at a session and those that are open in it.
#[derive(Debug)]
pub struct PendingApprovals {
    incoming: mpsc::Receiver<ApprovalQuestion>,
    open: BTreeMap<u64, ApprovalQuestion>,
    /// How many questions have arrived so far; a question's id is its number.
    last_id: u64,
}

/// A change in the questions.
#[derive(Debug)]
pub(super) enum QuestionChange {
    /// A new question is open.
    Asked { id: u64, request: Box<ApprovalRequest> },
    /// The asker no longer waits.
    Withdrawn { id: u64 },
}

impl PendingApprovals {
    /// Waits for the next change. Cancel-safe: dropping the future loses nothing.
    pub(super) async fn next_change(&mut self) -> QuestionChange {
        tokio::select! {
            biased;
            id = first_withdrawn(&mut self.open) => {
                self.open.remove(&id);
                QuestionChange::Withdrawn { id }
            }
            Some(question) = self.incoming.recv() => self.open_question(question),
        }
    }

    fn open_question(&mut self, question: ApprovalQuestion) -> QuestionChange {
        self.last_id += 1;
        let request = Box::new(question.request.clone());
        self.open.insert(self.last_id, question);
        QuestionChange::Asked { id: self.last_id, request }
    }

    /// Returns `None` if the question is not open, else the call whose admission it is about, if
    /// any.
    pub(super) fn admission_call_id(&self, id: u64) -> Option<Option<&str>> {
        self.open.get(&id).map(|ApprovalQuestion { request, .. }| match request.subject {
            ApprovalSubject::Call => Some(request.call.context.call_id.as_str()),
            ApprovalSubject::Access { .. }
            | ApprovalSubject::Grant(_)
            | ApprovalSubject::Form(_) => None,
        })
    }

    /// Withdraws a question. Its asker must have gone.
    pub(super) fn withdraw_question(&mut self, id: u64) {
        self.open.remove(&id);
    }

    /// Answers an open question, once. Returns whether the asker received the answer.
    pub(super) fn answer(&mut self, id: u64, answer: ApprovalAnswer) -> bool {
        self.open.remove(&id).is_some_and(|pending| pending.answer.send(answer).is_ok())
    }

    /// Returns the questions that still wait for an answer, the oldest first.
    pub(super) fn open_questions(&self) -> Vec<OpenQuestion> {
        let open = self.open.iter().filter(|(_, pending)| !pending.answer.is_closed());
        open.map(|(id, pending)| OpenQuestion {
            confirmation_id: *id,
            request: pending.request.clone(),
        })
        .collect()
    }

    /// Refuses every open question and returns their ids.
    pub(super) fn refuse_all(&mut self) -> Vec<u64> {
        let ids: Vec<u64> = self.open.keys().copied().collect();
        for id in &ids {
            self.answer(*id, ApprovalAnswer::No { reason: None });
        }
        ids
    }

    /// Whether an asker waits for an answer.
    pub(super) fn has_open_question(&self) -> bool {
        self.open.values().any(|pending| !pending.answer.is_closed())
    }
}

/// Waits, forever if need be, until one of the askers has gone.
fn first_withdrawn(open: &mut BTreeMap<u64, ApprovalQuestion>) -> impl Future<Output = u64> + '_ {
    future::poll_fn(|cx| {
        let mut withdrawn_ids =
            open.iter_mut().filter_map(|(id, pending)| match pending.answer.poll_closed(cx) {
                Poll::Ready(()) => Some(*id),
                Poll::Pending => None,
            });
        withdrawn_ids.next().map_or(Poll::Pending, Poll::Ready)
    })
}
