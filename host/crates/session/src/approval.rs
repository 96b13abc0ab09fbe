//! Questions to the person, on their way from the gate to whoever can answer.
//!
//! The toolbox asks through [`Consent`] and knows no session; the session knows no gate. Between
//! the two stands a channel: the [`Desk`] goes to the toolbox, the [`Approvals`] to the session.
//! Whenever there is nobody at the other end, the answer is [`Answer::Nobody`], never a yes and
//! never a wait without end.

use std::{
    collections::BTreeMap,
    future::{self, Future},
    task::Poll,
};

use sallyport_contract::{Answer, ApprovalRequest, BoxFuture, Consent, Subject};
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait to be seen by the session; further askers wait. Calls are admitted one
/// after another, so more than a few can only come from calls that ask while they run.
const QUESTIONS_WAITING_MAX: usize = 16;

/// Makes a desk to ask at, and the other end for the session that answers.
pub fn channel() -> (Desk, Approvals) {
    let (asking, arriving) = mpsc::channel(QUESTIONS_WAITING_MAX);
    (Desk { asking }, Approvals { arriving, open: BTreeMap::new(), asked: 0 })
}

/// Where the gate asks. Clones ask the same session.
#[derive(Debug, Clone)]
pub struct Desk {
    asking: mpsc::Sender<Question>,
}

impl Consent for Desk {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // Either end may be gone at any moment; then nobody is there to say yes.
            let _ = self.asking.send(Question { request, answer }).await;
            answered.await.unwrap_or(Answer::Nobody)
        })
    }
}

/// Consent where no person can be: every question is answered with [`Answer::Nobody`].
#[derive(Debug, Clone, Copy)]
pub struct NobodyToAsk;

impl Consent for NobodyToAsk {
    fn ask(&self, _request: ApprovalRequest) -> BoxFuture<'_, Answer> {
        Box::pin(future::ready(Answer::Nobody))
    }
}

#[derive(Debug)]
struct Question {
    request: ApprovalRequest,
    answer: oneshot::Sender<Answer>,
}

/// The questions that arrive at a session and those that are open in it.
#[derive(Debug)]
pub struct Approvals {
    arriving: mpsc::Receiver<Question>,
    open: BTreeMap<u64, Asker>,
    /// How many were asked so far; the number of a question is its id.
    asked: u64,
}

/// Who waits for an answer.
#[derive(Debug)]
struct Asker {
    answer: oneshot::Sender<Answer>,
    /// The call whose admission it is, when it is one: its arguments can still be others.
    admission_of: Option<String>,
}

impl From<Question> for Asker {
    fn from(question: Question) -> Self {
        let Question { request, answer } = question;
        let admission_of = match request.subject {
            Subject::Call => Some(request.call.context.call_id),
            Subject::Access { .. } => None,
        };
        Self { answer, admission_of }
    }
}

/// A change among the questions.
#[derive(Debug)]
pub(super) enum Change {
    /// A new one is open.
    Asked { id: u64, request: Box<ApprovalRequest> },
    /// Whoever asked does not wait any more.
    Withdrawn { id: u64 },
}

impl Approvals {
    /// Waits for the next change. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Change {
        tokio::select! {
            biased;
            id = first_withdrawn(&mut self.open) => {
                self.open.remove(&id);
                Change::Withdrawn { id }
            }
            Some(question) = self.arriving.recv() => self.open(question),
        }
    }

    fn open(&mut self, question: Question) -> Change {
        self.asked += 1;
        let request = Box::new(question.request.clone());
        self.open.insert(self.asked, question.into());
        Change::Asked { id: self.asked, request }
    }

    /// Whether a question is open, and if so, which call's admission it is about.
    pub(super) fn admission_of(&self, id: u64) -> Option<Option<&str>> {
        self.open.get(&id).map(|asker| asker.admission_of.as_deref())
    }

    /// Takes a question back. Whoever asked must have gone.
    pub(super) fn withdraw(&mut self, id: u64) {
        self.open.remove(&id);
    }

    /// Answers an open question, once. Returns whether the answer was heard.
    pub(super) fn answer(&mut self, id: u64, answer: Answer) -> bool {
        self.open.remove(&id).is_some_and(|asker| asker.answer.send(answer).is_ok())
    }

    /// Says no to every open question and returns which they were.
    pub(super) fn refuse_all(&mut self) -> Vec<u64> {
        let ids: Vec<u64> = self.open.keys().copied().collect();
        for id in &ids {
            self.answer(*id, Answer::No { reason: None });
        }
        ids
    }

    /// Whether somebody waits for an answer.
    pub(super) fn any_open(&self) -> bool {
        self.open.values().any(|asker| !asker.answer.is_closed())
    }
}

/// Waits, for ever if need be, until one of the askers has gone.
fn first_withdrawn(open: &mut BTreeMap<u64, Asker>) -> impl Future<Output = u64> + '_ {
    future::poll_fn(|cx| {
        let mut gone =
            open.iter_mut().filter_map(|(id, asker)| match asker.answer.poll_closed(cx) {
                Poll::Ready(()) => Some(*id),
                Poll::Pending => None,
            });
        gone.next().map_or(Poll::Pending, Poll::Ready)
    })
}
