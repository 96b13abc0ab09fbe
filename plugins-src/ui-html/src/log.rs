//! The contents of the page: a numbered transcript, the open questions and the current state.

use std::collections::{BTreeMap, VecDeque};

use sallyport_sdk::{
    prelude::*,
    ui::{Activity, CallRequest, CallResult, Message},
};

use crate::{
    facts::Facts,
    question::{Question, cut},
};

/// Maximum number of entries. A page that was away for longer misses the oldest.
const ENTRIES_MAX: usize = 1_000;

/// Maximum size of all entries, in bytes. It limits the response to a page that was away.
const ENTRIES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum length of an entry's text, in bytes. Longer text is cut with a mark.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// How much of an entry's text a page gets at first, in bytes. A browser shows that much without a
/// wait, and the rest unfolds.
const PREVIEW_BYTES: usize = 16 * 1024;

/// Maximum number of waiting questions. Further ones are not shown, so they cannot be approved.
const QUESTIONS_MAX: usize = 64;

/// An entry of the transcript.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    kind: EntryKind,
    text: String,
}

/// What an entry is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum EntryKind {
    /// A message.
    Message { author: &'static str, format: &'static str, origin: Option<String> },
    /// A finished call.
    Call {
        tool: String,
        outcome: String,
        /// What the user of the page answered, if there was a question.
        answer: Option<&'static str>,
    },
}

/// An entry, as a page gets it at first.
#[derive(Debug, Serialize)]
struct Preview<'a> {
    number: u64,
    #[serde(flatten)]
    kind: &'a EntryKind,
    text: &'a str,
    /// The length of the whole text.
    bytes: usize,
    /// How much of it is left out here.
    more: usize,
}

/// The response to a poll.
#[derive(Debug, Serialize)]
pub(crate) struct News<'a> {
    /// The number to poll with next.
    next: u64,
    /// Whether earlier entries are no longer kept.
    skipped: bool,
    events: Vec<Preview<'a>>,
    questions: &'a VecDeque<Question>,
    state: &'static str,
    /// The end of the unfinished answer.
    draft: &'a str,
    /// Whether the beginning of the unfinished answer is left out.
    draft_is_cut: bool,
    /// Changes with the facts about the session.
    facts: u64,
}

/// The contents of the page.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) facts: Facts,
    entries: VecDeque<Entry>,
    entries_bytes: usize,
    /// The number of the first entry that is kept.
    first: u64,
    questions: VecDeque<Question>,
    /// What was answered about calls that have not ended, by call.
    answers: BTreeMap<String, &'static str>,
    activity: Activity,
    draft: String,
    draft_is_cut: bool,
}

impl Log {
    pub(crate) fn message(&mut self, message: &Message) {
        self.draft.clear();
        self.draft_is_cut = false;
        let kind = EntryKind::Message {
            author: message.author.word(),
            format: message.format.word(),
            origin: message.origin.as_deref().map(|origin| cut(origin, PREVIEW_BYTES)),
        };
        self.push(Entry { kind, text: cut(&message.content, TEXT_BYTES_MAX) });
    }

    pub(crate) fn call(&mut self, result: &CallResult) {
        let answer = self.answers.remove(&result.call_id);
        let (tool, outcome) = (result.tool.clone(), result.outcome.clone());
        let text = cut(&plain(&result.data), TEXT_BYTES_MAX);
        self.push(Entry { kind: EntryKind::Call { tool, outcome, answer }, text });
    }

    /// Adds to the unfinished answer, of which the end is kept.
    pub(crate) fn extend_draft(&mut self, text: &str) {
        self.draft.push_str(text);
        if self.draft.len() > 2 * PREVIEW_BYTES {
            self.draft.drain(..self.draft.ceil_char_boundary(self.draft.len() - PREVIEW_BYTES));
            self.draft_is_cut = true;
        }
    }

    pub(crate) fn open(&mut self, request: CallRequest) {
        if self.questions.len() < QUESTIONS_MAX {
            self.questions.push_back(Question::new(request));
        }
    }

    pub(crate) fn close(&mut self, id: &str) {
        self.questions.retain(|question| question.id != id);
    }

    /// Closes a question that the user of the page answered.
    pub(crate) fn answered(&mut self, id: &str, approved: bool) {
        let question = self.questions.iter().find(|question| question.id == id);
        if let Some(question) = question.filter(|_| self.answers.len() < QUESTIONS_MAX) {
            let answer = if approved { "approved" } else { "denied" };
            self.answers.insert(question.call_id.clone(), answer);
        }
        self.close(id);
    }

    /// Returns whether a question can be approved: it must be shown in full.
    pub(crate) fn is_whole(&self, id: &str) -> bool {
        !self.questions.iter().any(|question| question.id == id && question.is_cut)
    }

    pub(crate) fn set_activity(&mut self, activity: Activity) {
        self.activity = activity;
    }

    /// Returns the news for a page that has all entries before `after`. A number that is too high
    /// belongs to an earlier session, so that page gets everything.
    pub(crate) fn news(&self, after: u64) -> News<'_> {
        let next = self.first + self.entries.len() as u64;
        let after = if after > next { 0 } else { after };
        let skip = usize::try_from(after.saturating_sub(self.first)).unwrap_or(usize::MAX);
        News {
            next,
            skipped: after < self.first,
            events: (self.first..)
                .zip(&self.entries)
                .skip(skip)
                .map(|(number, entry)| entry.preview(number))
                .collect(),
            questions: &self.questions,
            state: self.activity.word(),
            draft: &self.draft,
            draft_is_cut: self.draft_is_cut,
            facts: self.facts.revision,
        }
    }

    /// Returns the whole text of an entry, if it is kept.
    pub(crate) fn text(&self, number: u64) -> Option<&str> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get(index).map(|entry| entry.text.as_str())
    }

    fn push(&mut self, entry: Entry) {
        self.entries_bytes += entry.text.len();
        self.entries.push_back(entry);
        while self.entries.len() > ENTRIES_MAX || self.entries_bytes > ENTRIES_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.entries_bytes -= oldest.text.len();
            self.first += 1;
        }
    }
}

impl Entry {
    fn preview(&self, number: u64) -> Preview<'_> {
        let bytes = self.text.len();
        let text = &self.text[..self.text.floor_char_boundary(PREVIEW_BYTES)];
        Preview { number, kind: &self.kind, text, bytes, more: bytes - text.len() }
    }
}

/// Returns a text or the message of an error unchanged, and other data as JSON.
fn plain(data: &Value) -> String {
    match data.get("error").unwrap_or(data) {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        _ => format!("{data:#}"),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_sdk::ui::Author;

    use super::*;

    fn news(log: &Log, after: u64) -> Value {
        json!(log.news(after))
    }

    #[test]
    fn a_page_gets_what_it_does_not_have() {
        let mut log = Log::default();
        for text in ["a", "b", "c"] {
            log.message(&Message::new(Author::User, text));
        }
        for (after, want) in [(0, 3), (2, 1), (3, 0), (4, 3), (u64::MAX, 3)] {
            let news = news(&log, after);
            assert_eq!(news["events"].as_array().unwrap().len(), want, "{after}");
            assert_eq!((&news["next"], &news["skipped"]), (&json!(3), &json!(false)));
        }
    }

    #[test]
    fn a_long_answer_is_folded_and_its_rest_is_kept_to_the_last_byte() {
        let mut log = Log::default();
        let answer = format!("{}end", "ä".repeat(100 * 1024));
        log.message(&Message::new(Author::User, "short"));
        log.message(&Message::new(Author::Assistant, &answer));
        let events = &news(&log, 0)["events"];
        assert_eq!((&events[0]["more"], &events[0]["text"]), (&json!(0), &json!("short")));
        let shown = events[1]["text"].as_str().unwrap();
        assert_eq!(shown.len(), PREVIEW_BYTES);
        assert_eq!(events[1]["more"], answer.len() - shown.len());
        let number = events[1]["number"].as_u64().unwrap();
        assert_eq!(log.text(number), Some(answer.as_str()));
        for number in [number + 1, u64::MAX] {
            assert_eq!(log.text(number), None, "{number}");
        }
    }

    #[test]
    fn an_unfinished_answer_shows_its_end() {
        let mut log = Log::default();
        for number in 0..10_000 {
            log.extend_draft(&format!("wörd {number} "));
        }
        let told = news(&log, 0);
        assert!(told["draft"].as_str().unwrap().ends_with("wörd 9999 "));
        assert!(told["draft"].as_str().unwrap().len() <= 2 * PREVIEW_BYTES);
        assert_eq!(told["draft_is_cut"], true);
        log.message(&Message::new(Author::Assistant, "done"));
        log.extend_draft("next");
        let told = news(&log, 0);
        assert_eq!((&told["draft"], &told["draft_is_cut"]), (&json!("next"), &json!(false)));
    }

    #[test]
    fn no_flood_fills_the_memory_and_what_is_gone_is_told() {
        let mut log = Log::default();
        let long = "ä".repeat(TEXT_BYTES_MAX);
        (0..ENTRIES_MAX * 2).for_each(|_| log.message(&Message::new(Author::User, "a")));
        assert_eq!(log.entries.len(), ENTRIES_MAX);
        (0..20).for_each(|_| log.message(&Message::new(Author::User, &long)));
        for id in 0..1_000 {
            log.open(CallRequest::new(id, "a.b", Value::Null));
            log.answered(&id.to_string(), true);
        }
        (0..1_000).for_each(|id| log.open(CallRequest::new(id, "a.b", Value::Null)));
        (0..100).for_each(|_| log.extend_draft(&long));
        assert!(log.entries_bytes <= ENTRIES_BYTES_MAX);
        assert!(log.questions.len() == QUESTIONS_MAX && log.answers.len() <= QUESTIONS_MAX);
        assert!(log.draft.len() <= 2 * PREVIEW_BYTES);
        let told = news(&log, 5);
        assert_eq!(told["skipped"], true);
        let number = told["events"][0]["number"].as_u64().unwrap();
        let end = format!("… ({TEXT_BYTES_MAX} more bytes are not shown)");
        assert!(log.text(number).unwrap().ends_with(&end));
        assert_eq!(log.text(number - 1), None);
        assert_eq!(told["next"], ENTRIES_MAX * 2 + 20);
    }
}
