//! The calls that run on a connection, and whose user a question of the server is for.
//!
//! A server that speaks the versions with a handshake does not say to which call its question
//! belongs. It goes to the user of the call that began last, and to nobody if calls of several users
//! or sessions run: the wrong one would answer. With the other versions the question is the answer to
//! its call.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use sallyport_contract::{BoxFuture, FormQuestion};
use serde_json::{Map, Value};

use crate::{elicitation::read_question, journal::ConnectionJournal};

/// Most questions of a server during one call. A server that asks more loses its connection, because
/// it would ask until its user gives in.
pub(crate) const QUESTIONS_MAX: u32 = 8;

/// Asks the user of a call what its server wants to know.
pub trait CallQuestions: Send + Sync {
    /// The user and the session of the call. Calls with the same one have the same user to ask.
    fn owner(&self) -> &str;

    /// Asks, and waits for the answer. Dropping the future withdraws the question.
    fn ask_user(&self, question: FormQuestion) -> BoxFuture<'_, QuestionReply>;
}

/// How a question of a server ended.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionReply {
    /// The user agreed, with these values, which fit the fields.
    Accepted(Map<String, Value>),
    /// The user refused.
    Declined,
    /// It was not asked, or its answer is not sent, because of a secret.
    Withheld,
    /// Nobody answered.
    Unanswered,
}

/// The calls that run on one connection.
#[derive(Default)]
pub(crate) struct ConnectionCalls {
    calls: Mutex<Vec<Arc<ConnectionCall>>>,
    last_id: AtomicU64,
}

/// A call that runs.
pub(crate) struct ConnectionCall {
    id: u64,
    questions: Arc<dyn CallQuestions>,
    /// How many questions the server has asked during it.
    asked: AtomicU32,
}

/// A call that is among those that run, until this is dropped.
pub(crate) struct CallEntry {
    calls: Arc<ConnectionCalls>,
    pub(crate) call: Arc<ConnectionCall>,
}

impl ConnectionCalls {
    /// Adds a call.
    pub(crate) fn enter(self: &Arc<Self>, questions: Arc<dyn CallQuestions>) -> CallEntry {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let call = Arc::new(ConnectionCall { id, questions, asked: AtomicU32::new(0) });
        self.lock().push(Arc::clone(&call));
        CallEntry { calls: Arc::clone(self), call }
    }

    /// The call that a question without a call belongs to.
    pub(crate) fn asked_call(&self) -> Option<Arc<ConnectionCall>> {
        let calls = self.lock();
        let last = calls.last()?;
        let is_shared = calls.iter().any(|one| one.questions.owner() != last.questions.owner());
        (!is_shared).then(|| Arc::clone(last))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ConnectionCall>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        self.calls.lock().retain(|call| call.id != self.call.id);
    }
}

impl ConnectionCall {
    /// Counts what the server wants of the user. Returns whether it has asked too often, which ends
    /// its connection.
    pub(crate) fn is_exhausted(&self, journal: &ConnectionJournal) -> bool {
        let is_exhausted = self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX;
        if is_exhausted {
            let fault = format!("it asked the user more than {QUESTIONS_MAX} times in one call");
            journal.cut_off(fault);
        }
        is_exhausted
    }

    /// Takes a question to the user of the call, and its answer into the form of the protocol.
    pub(crate) async fn ask(
        &self,
        request: &ElicitRequestParams,
        journal: &ConnectionJournal,
    ) -> ElicitResult {
        if self.is_exhausted(journal) {
            return ElicitResult::new(ElicitationAction::Decline);
        }
        let question = match read_question(request) {
            Ok(question) => question,
            Err(problem) => {
                journal.add_question(request, &format!("refused: {problem}"));
                return ElicitResult::new(ElicitationAction::Decline);
            }
        };
        let is_form = question.page.is_none();
        let reply = self.questions.ask_user(question).await;
        journal.add_question(request, &describe_reply(&reply));
        match reply {
            QuestionReply::Accepted(values) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                if is_form { accepted.with_content(Value::Object(values)) } else { accepted }
            }
            QuestionReply::Declined | QuestionReply::Withheld | QuestionReply::Unanswered => {
                ElicitResult::new(ElicitationAction::Decline)
            }
        }
    }
}

/// What the record says about an answer: the names of the values, never the values.
fn describe_reply(reply: &QuestionReply) -> String {
    match reply {
        QuestionReply::Accepted(values) if values.is_empty() => "agreed".to_owned(),
        QuestionReply::Accepted(values) => {
            let names: Vec<&str> = values.keys().map(String::as_str).collect();
            format!("filled in {}", names.join(", "))
        }
        QuestionReply::Declined => "refused".to_owned(),
        QuestionReply::Withheld => {
            "refused: the question or the answer has a secret, which stays here".to_owned()
        }
        QuestionReply::Unanswered => "refused: nobody could answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Owner(&'static str);

    impl CallQuestions for Owner {
        fn owner(&self) -> &str {
            self.0
        }

        fn ask_user(&self, _: FormQuestion) -> BoxFuture<'_, QuestionReply> {
            Box::pin(std::future::ready(QuestionReply::Declined))
        }
    }

    #[test]
    fn a_question_is_for_the_last_call_unless_it_may_be_anothers() {
        let calls = Arc::new(ConnectionCalls::default());
        let asked = || calls.asked_call().map(|call| call.id);
        assert_eq!(asked(), None);
        let first = calls.enter(Arc::new(Owner("ann")));
        let second = calls.enter(Arc::new(Owner("ann")));
        assert_eq!(asked(), Some(second.call.id));
        let other = calls.enter(Arc::new(Owner("ben")));
        assert_eq!(asked(), None, "either user may be meant");
        drop(other);
        drop(second);
        assert_eq!(asked(), Some(first.call.id));
        drop(first);
        assert_eq!(asked(), None);
    }

    #[tokio::test]
    async fn a_server_that_asks_without_end_is_cut_off() {
        let (calls, journal) = (Arc::new(ConnectionCalls::default()), ConnectionJournal::default());
        let entry = calls.enter(Arc::new(Owner("ann")));
        let params = serde_json::json!({
            "message": "?", "requestedSchema": { "type": "object", "properties": {} }
        });
        let request: ElicitRequestParams = serde_json::from_value(params).unwrap();
        for _ in 0..QUESTIONS_MAX {
            entry.call.ask(&request, &journal).await;
            assert_eq!(journal.fault(), None);
        }
        entry.call.ask(&request, &journal).await;
        assert_eq!(
            journal.fault().as_deref(),
            Some("it asked the user more than 8 times in one call")
        );
        journal.wait_for_cut().await;
    }
}
