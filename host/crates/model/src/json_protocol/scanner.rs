//! Extracts the reply from an answer while the model writes it.
//!
//! The user reads the value of `"reply"` while it arrives, without the JSON around it. The scanner
//! reads only answers that begin with the object, or with thinking or a Markdown fence before it;
//! all others are read once they are complete. It never guesses: at the first unexpected character
//! it stops, and [`answer`](super::answer) decides.

use super::{
    answer::{THINKING_BEGINS, THINKING_ENDS},
    string_decoder::{DecodeStep, StringDecoder},
};

/// Longest opening before the object: a fence with the name of a language.
const OPENING_BYTES_MAX: usize = 32;

/// Longest key or tool name that is recorded. The protocol's own keys are shorter.
const WORD_BYTES_MAX: usize = 256;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerPiece {
    /// More of the reply.
    Reply(String),
    /// The name of the tool.
    Tool(String),
    /// More of the model's thinking.
    Thought(String),
}

/// The state of an answer that is still arriving.
#[derive(Debug, Default)]
pub(super) struct AnswerScanner {
    state: ScannerState,
    key: String,
    /// A second `reply` makes the object ambiguous, so it is not shown.
    has_replied: bool,
    pieces: Vec<AnswerPiece>,
}

#[derive(Debug)]
enum ScannerState {
    /// Before the object, with the text so far.
    Opening(String),
    /// In the model's thinking, with the number of matched bytes of its end mark.
    Thinking(usize),
    Key,
    InKey(StringDecoder),
    Colon,
    Value,
    InReply(StringDecoder),
    InTool(StringDecoder, String),
    /// In a value that is not shown.
    InOther(NestingState),
    AfterValue,
    /// After the object, or there is none.
    Finished,
}

/// The nesting depth within a value.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct NestingState {
    pub(super) depth: usize,
    pub(super) in_string: bool,
    is_escaped: bool,
}

impl Default for ScannerState {
    fn default() -> Self {
        Self::Opening(String::new())
    }
}

impl AnswerScanner {
    /// Reads the next piece of the answer and returns the pieces found in it.
    pub(super) fn push(&mut self, piece: &str) -> Vec<AnswerPiece> {
        for c in piece.chars() {
            let at = std::mem::replace(&mut self.state, ScannerState::Finished);
            self.state = self.next_state(at, c);
        }
        std::mem::take(&mut self.pieces)
    }

    fn next_state(&mut self, at: ScannerState, c: char) -> ScannerState {
        match at {
            ScannerState::Opening(before) => scan_opening(before, c),
            ScannerState::Thinking(matched) => self.scan_thinking(matched, c),
            ScannerState::InKey(string) => self.scan_key(string, c),
            ScannerState::InReply(string) => self.scan_reply(string, c),
            ScannerState::InTool(string, name) => self.scan_tool_name(string, name, c),
            ScannerState::InOther(nest) => scan_other_value(nest, c),
            ScannerState::Finished => ScannerState::Finished,
            between if is_json_whitespace(c) => between,
            ScannerState::Key if c == '"' => {
                self.key.clear();
                ScannerState::InKey(StringDecoder::default())
            }
            ScannerState::Colon if c == ':' => ScannerState::Value,
            ScannerState::Value => self.begin_value(c),
            ScannerState::AfterValue if c == ',' => ScannerState::Key,
            ScannerState::Key | ScannerState::Colon | ScannerState::AfterValue => {
                ScannerState::Finished
            }
        }
    }

    fn scan_thinking(&mut self, matched: usize, c: char) -> ScannerState {
        if THINKING_ENDS[matched..].starts_with(c) {
            let all = matched + 1 == THINKING_ENDS.len();
            return if all { ScannerState::default() } else { ScannerState::Thinking(matched + 1) };
        }
        // `<` occurs only at the start of the mark, so after a partial match only a new start can
        // follow.
        THINKING_ENDS[..matched].chars().for_each(|c| self.push_thought(c));
        match c {
            '<' => ScannerState::Thinking(1),
            c => {
                self.push_thought(c);
                ScannerState::Thinking(0)
            }
        }
    }

    fn scan_key(&mut self, mut string: StringDecoder, c: char) -> ScannerState {
        match string.decode_char(c) {
            Ok(DecodeStep::End) => ScannerState::Colon,
            Ok(step) if append_bounded(&mut self.key, step) => ScannerState::InKey(string),
            _ => ScannerState::Finished,
        }
    }

    fn begin_value(&mut self, c: char) -> ScannerState {
        match (self.key.as_str(), c) {
            ("reply", '"') if !self.has_replied => {
                self.has_replied = true;
                ScannerState::InReply(StringDecoder::default())
            }
            ("tool", '"') => ScannerState::InTool(StringDecoder::default(), String::new()),
            _ => scan_other_value(NestingState::default(), c),
        }
    }

    fn scan_reply(&mut self, mut string: StringDecoder, c: char) -> ScannerState {
        match string.decode_char(c) {
            Ok(DecodeStep::Char(c)) => self.push_reply(c),
            Ok(DecodeStep::Pending) => {}
            Ok(DecodeStep::End) => return ScannerState::AfterValue,
            Err(_) => return ScannerState::Finished,
        }
        ScannerState::InReply(string)
    }

    fn scan_tool_name(
        &mut self,
        mut string: StringDecoder,
        mut name: String,
        c: char,
    ) -> ScannerState {
        match string.decode_char(c) {
            Ok(DecodeStep::End) => {
                self.pieces.push(AnswerPiece::Tool(name));
                ScannerState::AfterValue
            }
            Ok(step) if append_bounded(&mut name, step) => ScannerState::InTool(string, name),
            _ => ScannerState::Finished,
        }
    }

    fn push_thought(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(AnswerPiece::Thought(text)) => text.push(c),
            _ => self.pieces.push(AnswerPiece::Thought(c.to_string())),
        }
    }

    fn push_reply(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(AnswerPiece::Reply(text)) => text.push(c),
            _ => self.pieces.push(AnswerPiece::Reply(c.to_string())),
        }
    }
}

impl NestingState {
    /// Reads one character of a value.
    pub(super) fn read_char(&mut self, c: char) {
        match c {
            _ if std::mem::take(&mut self.is_escaped) => {}
            '\\' if self.in_string => self.is_escaped = true,
            '"' => self.in_string = !self.in_string,
            '{' | '[' if !self.in_string => self.depth += 1,
            '}' | ']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn is_top_level(self) -> bool {
        self.depth == 0 && !self.in_string
    }
}

fn scan_opening(mut before: String, c: char) -> ScannerState {
    if c == '{' && is_fence(before.trim_end()) {
        return ScannerState::Key;
    }
    if !(before.is_empty() && is_json_whitespace(c)) {
        before.push(c);
    }
    let so_far = before.trim_end();
    if so_far == THINKING_BEGINS {
        return ScannerState::Thinking(0);
    }
    let marks = ["```", THINKING_BEGINS];
    let may_open = is_fence(so_far) || marks.iter().any(|mark| mark.starts_with(so_far));
    if may_open && before.len() <= OPENING_BYTES_MAX {
        ScannerState::Opening(before)
    } else {
        ScannerState::Finished
    }
}

/// Returns true for an empty text, or a fence with the name of a language.
fn is_fence(before: &str) -> bool {
    let language = before.strip_prefix("```");
    before.is_empty() || language.is_some_and(|word| word.chars().all(|c| c.is_alphanumeric()))
}

fn scan_other_value(mut nest: NestingState, c: char) -> ScannerState {
    match c {
        ',' if nest.is_top_level() => ScannerState::Key,
        '}' if nest.is_top_level() => ScannerState::Finished,
        _ => {
            nest.read_char(c);
            ScannerState::InOther(nest)
        }
    }
}

/// Appends to a word; false once it exceeds [`WORD_BYTES_MAX`].
fn append_bounded(word: &mut String, step: DecodeStep) -> bool {
    if let DecodeStep::Char(c) = step {
        word.push(c);
    }
    word.len() <= WORD_BYTES_MAX
}

fn is_json_whitespace(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the reply, the tools and the thoughts that pieces tell of, each joined.
    fn scan_all<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Vec<String>, String) {
        let (mut reply, mut tools, mut thoughts) = (String::new(), Vec::new(), String::new());
        let mut scanner = AnswerScanner::default();
        for found in pieces.into_iter().flat_map(|piece| scanner.push(piece)) {
            match found {
                AnswerPiece::Reply(text) => reply.push_str(&text),
                AnswerPiece::Tool(name) => tools.push(name),
                AnswerPiece::Thought(text) => thoughts.push_str(&text),
            }
        }
        (reply, tools, thoughts)
    }

    fn scan<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Vec<String>) {
        let (reply, tools, _) = scan_all(pieces);
        (reply, tools)
    }

    /// Returns the text cut in two at every place where a text can be cut.
    fn cuts(text: &str) -> impl Iterator<Item = [&str; 2]> {
        (0..=text.len()).filter_map(|at| text.split_at_checked(at)).map(|(a, b)| [a, b])
    }

    #[track_caller]
    fn check(answer: &str, reply: &str, tools: &[&str]) {
        let want = (reply.to_owned(), tools.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(scan([answer]), want, "{answer}");
        let letters: Vec<String> = answer.chars().map(String::from).collect();
        assert_eq!(scan(letters.iter().map(String::as_str)), want, "{answer}");
        for pieces in cuts(answer) {
            assert_eq!(scan(pieces), want, "{pieces:?}");
        }
    }

    #[test]
    fn the_reply_is_found_wherever_it_stands() {
        check(r#"{"reply":"Grüße \ud83d\ude00 \"x\"\n東京"}"#, "Grüße 😀 \"x\"\n東京", &[]);
        check(" \n{ \"reply\" : \"a\" } ", "a", &[]);
        check("```json\n{\"reply\":\"a\"}\n```", "a", &[]);
        check("```\n{\"reply\":\"a\"}```", "a", &[]);
        check(r#"{"tool":"x","args":{"reply":"no","b":["}",{}]},"reply":"a"}"#, "a", &["x"]);
        check(r#"{"n":-1.5e3,"t":true,"s":"\"}","reply":"a","tool":"\u0078"}"#, "a", &["x"]);
        check(r#"{"\u0072eply":"a"}"#, "a", &[]);
    }

    #[test]
    fn nothing_else_is_taken_for_it() {
        for answer in [
            "",
            "plain text with {\"reply\":\"a\"}",
            "`{\"reply\":\"a\"}`",
            "```two words\n{\"reply\":\"a\"}",
            "[{\"reply\":\"a\"}]",
            "{{\"reply\":\"a\"}}",
            "{\"other\":{\"reply\":\"a\"}}",
            "{\"reply\":7}",
            "{\"reply\" \"a\"}",
            "{\"reply\":{\"text\":\"a\"}}",
        ] {
            check(answer, "", &[]);
        }
        for long in [OPENING_BYTES_MAX, WORD_BYTES_MAX].map(|bytes| "x".repeat(bytes + 1)) {
            check(&format!("```{long}\n{{\"reply\":\"a\"}}"), "", &[]);
        }
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        check(&format!(r#"{{"tool":"{long}","reply":"a"}}"#), "", &[]);
        check(&format!(r#"{{"{long}":1,"reply":"a"}}"#), "", &[]);
        check(r#"{"reply":"a" "tool":"x"}"#, "a", &[]);
        check(r#"{"reply":"a"}{"reply":"b"}"#, "a", &[]);
        check(r#"{"reply":"a","reply":"b"}"#, "a", &[]);
        check(r#"{"reply":"a\ud83d","tool":"x"}"#, "a", &[]);
    }

    #[test]
    fn thinking_is_told_apart() {
        let rows = [
            ("<think>hm</think>{\"reply\":\"a\"}", "hm", "a"),
            (
                "\n<think>\na < b, <</think </think>\n\n```json\n{\"reply\":\"a\"}",
                "\na < b, <</think ",
                "a",
            ),
            ("<think></think>{\"reply\":\"a\"}", "", "a"),
            ("<think>{\"reply\":\"no\"}", "{\"reply\":\"no\"}", ""),
            ("<thin>x</think>{\"reply\":\"a\"}", "", ""),
        ];
        for (answer, thoughts, reply) in rows {
            let want = (reply.to_owned(), Vec::new(), thoughts.to_owned());
            assert_eq!(scan_all([answer]), want, "{answer}");
            for pieces in cuts(answer) {
                assert_eq!(scan_all(pieces), want, "{pieces:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same(
            answer in r#"(<think>[a</think>]{0,12}</think>)?( |```json\n)?\{("reply":"([a-z"é😀]|\\u00e9|\\ud83d\\ude00|\\n){0,9}"|"tool":"x"|"args":\{"a":["\]}]{0,3}\}|[,:{}]){0,6}\}?"#,
        ) {
            let whole = scan_all([answer.as_str()]);
            for pieces in cuts(&answer) {
                prop_assert_eq!(scan_all(pieces), whole.clone());
            }
        }

        #[test]
        fn every_reply_arrives_as_it_was_meant(reply in any::<String>(), name in "[a-z]{1,9}") {
            let answer = serde_json::json!({ "tool": name, "reply": reply }).to_string();
            for pieces in cuts(&answer) {
                prop_assert_eq!(scan(pieces), (reply.clone(), vec![name.clone()]));
            }
        }

        #[test]
        fn no_text_is_too_strange(pieces in proptest::collection::vec(any::<String>(), 0..9)) {
            let whole = scan([pieces.concat().as_str()]);
            prop_assert_eq!(scan(pieces.iter().map(String::as_str)), whole);
        }
    }
}
