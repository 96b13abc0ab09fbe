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

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use sallyport_contract::{BoxFuture, FormQuestion};
use serde_json::{Map, Value};

use crate::{
    elicitation::read_question,
    journal::{CallRecord, ConnectionJournal, REMARKS_MAX, lock},
};

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
    questions: Arc<dyn CallQuestions>,
    record: Arc<CallRecord>,
    /// How many questions the server has asked during it.
    asked: AtomicU32,
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
                self.note_question(request, &format!("refused: {problem}"), journal);
                return ElicitResult::new(ElicitationAction::Decline);
            }
        };
        let is_form = question.page.is_none();
        let reply = self.questions.ask_user(question).await;
        self.note_question(request, &describe_reply(&reply), journal);
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

    /// Notes a question, and how it ended, in the record of the call.
    fn note_question(
        &self,
        request: &ElicitRequestParams,
        answer: &str,
        journal: &ConnectionJournal,
    ) {
        let words = match request {
            ElicitRequestParams::FormElicitationParams { message, .. }
            | ElicitRequestParams::UrlElicitationParams { message, .. } => message.as_str(),
            _ => "",
        };
        self.record.add_question(&journal.redact(words), &journal.redact(answer));
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
    use std::io::Cursor;

    use rmcp::transport::Transport;

    use super::*;
    use crate::{journal::AskedQuestion, transport::ServerLines};

    const SECRET: &str = "s3cret-token-77";

    fn journal() -> ConnectionJournal {
        ConnectionJournal::new(Arc::new(|text: &str| text.replace(SECRET, "[gone]")))
    }

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
    fn enter(calls: &Arc<ConnectionCalls>, owner: &'static str) -> (CallEntry, Arc<CallRecord>) {
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

    #[tokio::test]
    async fn a_question_is_in_the_record_of_its_own_call() {
        let journal = journal();
        let (ann, ann_record) = enter(&journal.calls, "ann");
        let (_ben, ben_record) = enter(&journal.calls, "ben");
        ann.call.ask(&question("?"), &journal).await;
        assert!(ben_record.take_questions().is_empty());
        let asked = AskedQuestion { what: "?".to_owned(), answer: "refused".to_owned() };
        assert_eq!(ann_record.take_questions(), [asked]);
    }

    fn question(message: &str) -> ElicitRequestParams {
        let params = serde_json::json!({
            "message": message, "requestedSchema": { "type": "object", "properties": {} }
        });
        serde_json::from_value(params).unwrap()
    }

    /// The excerpt ended within the secret, so nothing recognised the rest.
    #[tokio::test]
    async fn a_secret_across_the_end_of_an_excerpt_leaves_no_part() {
        let journal = Arc::new(journal());
        let (ann, record) = enter(&journal.calls, "ann");
        let words = |chars_max: usize| format!("{}{SECRET}", "x".repeat(chars_max - 6));
        journal.add_remark("it logged", &words(300 - "it logged: ".len()));
        let printed = Cursor::new(format!("{}\n", words(120)).into_bytes());
        let mut lines = ServerLines::new(printed, Vec::<u8>::new(), Arc::clone(&journal));
        assert!(lines.receive().await.is_none());
        ann.call.ask(&question(&words(2000)), &journal).await;
        let (remarks, questions) = (record.take_remarks(), record.take_questions());
        assert_eq!((remarks.len(), questions.len()), (2, 1));
        let texts = format!("{remarks:?} {questions:?}");
        assert!(!texts.contains(&SECRET[..4]), "{texts}");
        assert_eq!(texts.matches("x[gone]").count(), 3, "{texts}");
    }

    #[tokio::test]
    async fn a_server_that_asks_without_end_is_cut_off() {
        let (calls, journal) = (Arc::new(ConnectionCalls::default()), journal());
        let entry = enter(&calls, "ann").0;
        let request = question("?");
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
