//! The calls that run on a connection, and whose user a question of the server is for.
//!
//! A server that speaks the versions with a handshake does not say to which call its question
//! belongs. It goes to the user of the call that began last, and to nobody if calls of several users
//! or sessions run: the wrong one would answer. With the other versions the question is the answer to
//! its call.
//!
//! The record of a call has what happens during it. A server does not say to which call a log message
//! belongs either, so while calls of several users or sessions run, their records get no words of it:
//! they could be about the others.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use sallyport_contract::{BoxFuture, FormQuestion};
use serde_json::{Map, Value};

use crate::{
    call_record::{CallRecord, REMARKS_MAX},
    mutex::lock,
};

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

/// The calls of one connection.
#[derive(Default)]
pub(crate) struct ConnectionCalls {
    running: Mutex<RunningCalls>,
    last_id: AtomicU64,
}

/// The calls that run, in the order in which they began.
#[derive(Default)]
struct RunningCalls {
    calls: Vec<Arc<ConnectionCall>>,
    /// The owner of the call that ended last.
    last_owner: Option<String>,
    /// What happened since then while no call ran.
    waiting: Vec<WaitingRemark>,
}

/// A remark for the call that begins next.
struct WaitingRemark {
    what: String,
    words: String,
}

/// A call that runs.
pub(crate) struct ConnectionCall {
    id: u64,
    pub(crate) questions: Arc<dyn CallQuestions>,
    pub(crate) record: Arc<CallRecord>,
    /// How many questions the server has asked during it.
    pub(crate) asked: AtomicU32,
}

/// A call that is among those that run, until this is dropped.
pub(crate) struct CallEntry {
    calls: Arc<ConnectionCalls>,
    pub(crate) call: Arc<ConnectionCall>,
}

impl RunningCalls {
    /// The call that something without a call belongs to; `None` if no call runs, or if it may belong
    /// to several users or sessions.
    fn only_owners_last(&self) -> Option<&Arc<ConnectionCall>> {
        let last = self.calls.last()?;
        let is_shared =
            self.calls.iter().any(|one| one.questions.owner() != last.questions.owner());
        (!is_shared).then_some(last)
    }
}

impl ConnectionCalls {
    /// Adds a call. Its record gets what happened since the last one.
    pub(crate) fn enter(
        self: &Arc<Self>,
        questions: Arc<dyn CallQuestions>,
        record: Arc<CallRecord>,
    ) -> CallEntry {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let mut running = lock(&self.running);
        let is_same_owner =
            running.last_owner.as_deref().is_none_or(|owner| owner == questions.owner());
        for WaitingRemark { what, words } in running.waiting.drain(..) {
            let words = if is_same_owner { words.as_str() } else { "" };
            record.add_remark(&remark_text(&what, words));
        }
        let asked = AtomicU32::new(0);
        let call = Arc::new(ConnectionCall { id, questions, record, asked });
        running.calls.push(Arc::clone(&call));
        drop(running);
        CallEntry { calls: Arc::clone(self), call }
    }

    /// The call that a question without a call belongs to.
    pub(crate) fn asked_call(&self) -> Option<Arc<ConnectionCall>> {
        lock(&self.running).only_owners_last().cloned()
    }

    /// Notes what the server did, and its words. A user whom they may not be about does not read them.
    pub(crate) fn add_remark(&self, what: &str, words: &str) {
        let mut running = lock(&self.running);
        if let Some(call) = running.only_owners_last() {
            return call.record.add_remark(&remark_text(what, words));
        }
        for call in &running.calls {
            call.record.add_remark(what);
        }
        if running.calls.is_empty() && running.waiting.len() < REMARKS_MAX {
            let (what, words) = (what.to_owned(), words.to_owned());
            running.waiting.push(WaitingRemark { what, words });
        }
    }
}

/// A remark as a record has it.
fn remark_text(what: &str, words: &str) -> String {
    if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        let mut running = lock(&self.calls.running);
        running.calls.retain(|call| call.id != self.call.id);
        running.last_owner = Some(self.call.questions.owner().to_owned());
    }
}

#[cfg(test)]
pub(crate) mod tests {
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

    /// A call of this owner, and its record.
    pub(crate) fn enter(
        calls: &Arc<ConnectionCalls>,
        owner: &'static str,
    ) -> (CallEntry, Arc<CallRecord>) {
        let record = Arc::<CallRecord>::default();
        (calls.enter(Arc::new(Owner(owner)), Arc::clone(&record)), record)
    }

    #[test]
    fn a_question_is_for_the_last_call_unless_it_may_be_anothers() {
        let calls = Arc::new(ConnectionCalls::default());
        let asked = || calls.asked_call().map(|call| call.id);
        assert_eq!(asked(), None);
        let first = enter(&calls, "ann").0;
        let second = enter(&calls, "ann").0;
        assert_eq!(asked(), Some(second.call.id));
        let other = enter(&calls, "ben").0;
        assert_eq!(asked(), None, "either user may be meant");
        drop(other);
        drop(second);
        assert_eq!(asked(), Some(first.call.id));
        drop(first);
        assert_eq!(asked(), None);
    }

    /// Whichever call ended first got what the server logged for another user.
    #[test]
    fn no_words_about_one_user_are_in_the_record_of_another() {
        let calls = Arc::new(ConnectionCalls::default());
        let logged = |words: &str| calls.add_remark("it logged", words);
        logged("ready");
        let (ann, ann_record) = enter(&calls, "ann");
        assert_eq!(ann_record.take_remarks(), ["it logged: ready"], "no call has run before");
        logged("ann's");
        let (ben, ben_record) = enter(&calls, "ben");
        logged("whose?");
        assert_eq!(ann_record.take_remarks(), ["it logged: ann's", "it logged"]);
        assert_eq!(ben_record.take_remarks(), ["it logged"]);
        drop(ann);
        logged("ben's");
        drop(ben);
        assert_eq!(ben_record.take_remarks(), ["it logged: ben's"]);
        logged("late");
        assert_eq!(enter(&calls, "ann").1.take_remarks(), ["it logged"]);
        logged("late");
        assert_eq!(enter(&calls, "ann").1.take_remarks(), ["it logged: late"]);
        assert!(ann_record.take_remarks().is_empty());
    }
}
