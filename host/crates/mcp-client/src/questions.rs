//! The questions of a server, as they are taken to the user of a call.

use std::sync::atomic::Ordering;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;

use crate::{
    calls::{ConnectionCall, QuestionReply},
    elicitation::read_question,
    journal::ConnectionJournal,
};

/// Most questions of a server during one call. A server that asks more loses its connection, because
/// it would ask until its user gives in.
const QUESTIONS_MAX: u32 = 8;

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
    use std::{io::Cursor, sync::Arc};

    use rmcp::transport::Transport;

    use super::*;
    use crate::{
        call_record::AskedQuestion,
        calls::{ConnectionCalls, tests::enter},
        transport::ServerLines,
    };

    const SECRET: &str = "s3cret-token-77";

    fn journal() -> ConnectionJournal {
        ConnectionJournal::new(Arc::new(|text: &str| text.replace(SECRET, "[gone]")))
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
