//! The contents of the page: a numbered transcript and the current state.

use std::collections::VecDeque;

use sallyport_sdk::{
    prelude::*,
    ui::{Activity, CallRequest, CallResult, Message},
};

/// Maximum number of entries. A page that was away for longer misses the oldest.
const ENTRIES_MAX: usize = 1_000;

/// Maximum size of all entries, in bytes. It limits the response to a page that was away.
const ENTRIES_BYTES_MAX: usize = 512 * 1024;

/// Maximum length of an entry's text, in bytes. Longer text is cut with a mark.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of waiting questions. Further ones are not shown, so they cannot be approved.
const QUESTIONS_MAX: usize = 64;

/// An entry of the transcript.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Entry {
    /// A message.
    Message { author: &'static str, format: &'static str, text: String, origin: Option<String> },
    /// A finished call.
    Call { tool: String, outcome: String, text: String },
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Question {
    pub(crate) id: String,
    tool: String,
    arguments: String,
    warning: Option<String>,
    /// Whether a part is too long to be shown. Such a question can only be denied here.
    is_cut: bool,
}

/// The response to a poll.
#[derive(Debug, Serialize)]
pub(crate) struct News<'a> {
    /// The number to poll with next.
    next: u64,
    /// Whether earlier entries are no longer kept.
    skipped: bool,
    events: Vec<&'a Entry>,
    questions: &'a VecDeque<Question>,
    state: &'static str,
    /// The unfinished answer.
    draft: &'a str,
}

/// The contents of the page.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    entries_bytes: usize,
    /// The number of the first entry that is kept.
    first: u64,
    questions: VecDeque<Question>,
    activity: Activity,
    draft: String,
}

impl Log {
    pub(crate) fn message(&mut self, message: &Message) {
        self.draft.clear();
        self.push(Entry::Message {
            author: message.author.word(),
            format: message.format.word(),
            text: cut(&message.content),
            origin: message.origin.as_deref().map(cut),
        });
    }

    pub(crate) fn call(&mut self, result: &CallResult) {
        let text = if result.is_completed() { String::new() } else { cut(&plain(&result.data)) };
        let (tool, outcome) = (result.tool.clone(), result.outcome.clone());
        self.push(Entry::Call { tool, outcome, text });
    }

    pub(crate) fn extend_draft(&mut self, text: &str) {
        if self.draft.len() < TEXT_BYTES_MAX {
            self.draft.push_str(text);
        }
    }

    pub(crate) fn open(&mut self, request: CallRequest) {
        if self.questions.len() < QUESTIONS_MAX {
            let arguments = visible(&format!("{:#}", request.arguments));
            let warning = request.security_warning.as_deref().map(visible);
            let is_long = |text: &String| text.len() > TEXT_BYTES_MAX;
            self.questions.push_back(Question {
                id: request.confirmation_id,
                tool: visible(&request.tool),
                is_cut: is_long(&arguments) || warning.as_ref().is_some_and(is_long),
                arguments: cut(&arguments),
                warning: warning.as_deref().map(cut),
            });
        }
    }

    pub(crate) fn close(&mut self, id: &str) {
        self.questions.retain(|question| question.id != id);
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
            events: self.entries.iter().skip(skip).collect(),
            questions: &self.questions,
            state: self.activity.word(),
            draft: &self.draft,
        }
    }

    fn push(&mut self, entry: Entry) {
        self.entries_bytes += entry.text_bytes();
        self.entries.push_back(entry);
        while self.entries.len() > ENTRIES_MAX || self.entries_bytes > ENTRIES_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.entries_bytes -= oldest.text_bytes();
            self.first += 1;
        }
    }
}

impl Entry {
    fn text_bytes(&self) -> usize {
        let (Self::Message { text, .. } | Self::Call { text, .. }) = self;
        text.len()
    }
}

/// Returns a text or the message of an error unchanged, and other data as JSON.
fn plain(data: &Value) -> String {
    let words = data.get("error").unwrap_or(data).as_str();
    words.map_or_else(|| data.to_string(), str::to_owned)
}

/// Escapes invisible characters that change how a browser displays text, such as direction marks,
/// because users must see what they approve. Line breaks are kept.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c if is_hidden(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Matches controls, zero-width and direction marks, separators, tags and blank letters.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{2800}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let shown = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    format!("{shown}… ({} more bytes are not shown)", text.len() - shown.len())
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
    fn what_a_person_agrees_to_is_seen_as_it_is() {
        let mut log = Log::default();
        let arguments = json!({ "path": "/tmp/\u{202e}txt.exe\u{200b}\u{e0041} é 漢" });
        let mut request = CallRequest::new(1, "files.remove", arguments);
        request.security_warning = Some("It can\nremove \u{2066}files.".to_owned());
        log.open(request);
        let question = &news(&log, 0)["questions"][0];
        let seen = "{\n  \"path\": \"/tmp/\\u{202e}txt.exe\\u{200b}\\u{e0041} é 漢\"\n}";
        assert_eq!(question["arguments"], seen);
        assert_eq!(question["warning"], "It can\nremove \\u{2066}files.");
    }

    #[test]
    fn what_is_not_shown_whole_can_only_be_denied() {
        let mut log = Log::default();
        log.open(CallRequest::new(1, "a.b", json!("short")));
        log.open(CallRequest::new(2, "a.b", json!("x".repeat(TEXT_BYTES_MAX))));
        let mut warned = CallRequest::new(3, "a.b", Value::Null);
        warned.security_warning = Some("\u{202e}".repeat(TEXT_BYTES_MAX / 3));
        log.open(warned);
        for (id, is_whole) in [(1, true), (2, false), (3, false)] {
            assert_eq!(log.is_whole(&id.to_string()), is_whole, "{id}");
        }
        let questions = &news(&log, 0)["questions"];
        assert!(questions[1]["arguments"].as_str().unwrap().ends_with("bytes are not shown)"));
    }

    #[test]
    fn no_flood_fills_the_memory_and_what_is_gone_is_told() {
        let mut log = Log::default();
        let long = "ä".repeat(TEXT_BYTES_MAX);
        (0..ENTRIES_MAX * 2).for_each(|_| log.message(&Message::new(Author::User, "a")));
        assert_eq!(log.entries.len(), ENTRIES_MAX);
        (0..20).for_each(|_| log.message(&Message::new(Author::User, &long)));
        (0..1_000).for_each(|id| log.open(CallRequest::new(id, "a.b", Value::Null)));
        (0..100).for_each(|_| log.extend_draft(&long));
        assert!(log.entries_bytes <= ENTRIES_BYTES_MAX);
        assert_eq!(log.questions.len(), QUESTIONS_MAX);
        assert!(log.draft.len() < TEXT_BYTES_MAX * 3);
        let told = news(&log, 5);
        assert_eq!(told["skipped"], true);
        let end = "… (65536 more bytes are not shown)";
        assert!(told["events"][0]["text"].as_str().unwrap().ends_with(end));
        assert_eq!(told["next"], ENTRIES_MAX * 2 + 20);
    }
}
