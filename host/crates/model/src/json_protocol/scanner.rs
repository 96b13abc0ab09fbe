//! Extracts the reply from an answer while the model writes it.
//!
//! The user reads the value of `"reply"` while it arrives, without the JSON around it. The scanner
//! reads only answers that begin with the object, or with thinking or a Markdown fence before it;
//! all others are read once they are complete. It never guesses: at the first unexpected character
//! it stops, and [`answer`](super::answer) decides.

use serde_json::Deserializer;

use super::answer::{THINKING_BEGINS, THINKING_ENDS};

/// Longest opening before the object: a fence with the name of a language.
const OPENING_BYTES_MAX: usize = 32;

/// Longest key or tool name that is recorded, with its quotation marks. The protocol's own keys are
/// shorter.
const WORD_BYTES_MAX: usize = 256;

/// The lengths of JSON's escapes in bytes: `\n`, `\u00e9` and `\ud83d\ude00`.
const ESCAPE_BYTES: [usize; 3] = [2, 6, 12];

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
    /// The text that cannot be read before more of it arrives. It is always short.
    unread: String,
    /// A second `reply` makes the object ambiguous, so it is not shown.
    has_replied: bool,
}

#[derive(Debug, Default)]
enum ScannerState {
    /// Before the object.
    #[default]
    Opening,
    Thinking,
    Key,
    /// After a key.
    Colon(String),
    Value(String),
    InReply,
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

impl AnswerScanner {
    /// Reads the next piece of the answer and returns the pieces found in it.
    pub(super) fn push(&mut self, piece: &str) -> Vec<AnswerPiece> {
        let text = std::mem::take(&mut self.unread) + piece;
        let (mut rest, mut found) = (text.as_str(), Vec::new());
        while let Some(after) = self.read_next(rest, &mut found) {
            rest = after;
        }
        if !matches!(self.state, ScannerState::Finished) {
            self.unread = rest.to_owned();
        }
        found
    }

    /// Reads the beginning of a text and returns the rest, or `None` if it needs more text.
    fn read_next<'t>(&mut self, text: &'t str, found: &mut Vec<AnswerPiece>) -> Option<&'t str> {
        let token = text.trim_start_matches([' ', '\t', '\n', '\r']);
        match &mut self.state {
            ScannerState::Finished => None,
            _ if text.is_empty() => None,
            ScannerState::Opening if text.starts_with(char::is_whitespace) => {
                Some(text.trim_start())
            }
            ScannerState::Opening => self.read_opening(text),
            ScannerState::Thinking => self.read_thinking(text, found),
            ScannerState::InReply => self.read_reply(text, found),
            ScannerState::InOther(nest) => {
                let Some(end) = text.find(|c| nest.ends_value(c)) else { return Some("") };
                self.state = ScannerState::AfterValue;
                Some(&text[end..])
            }
            _ if token.is_empty() => Some(""),
            ScannerState::Key => {
                let (key, rest) = self.read_word(token)?;
                self.state = ScannerState::Colon(key);
                Some(rest)
            }
            ScannerState::Colon(key) if token.starts_with(':') => {
                self.state = ScannerState::Value(std::mem::take(key));
                Some(&token[1..])
            }
            ScannerState::Value(key) => match (key.as_str(), token.starts_with('"')) {
                ("reply", true) if !std::mem::replace(&mut self.has_replied, true) => {
                    self.state = ScannerState::InReply;
                    Some(&token[1..])
                }
                ("tool", true) => {
                    let (name, rest) = self.read_word(token)?;
                    found.push(AnswerPiece::Tool(name));
                    self.state = ScannerState::AfterValue;
                    Some(rest)
                }
                _ => {
                    self.state = ScannerState::InOther(NestingState::default());
                    Some(token)
                }
            },
            ScannerState::AfterValue if token.starts_with(',') => {
                self.state = ScannerState::Key;
                Some(&token[1..])
            }
            ScannerState::Colon(_) | ScannerState::AfterValue => self.finish(),
        }
    }

    fn finish<T>(&mut self) -> Option<T> {
        self.state = ScannerState::Finished;
        None
    }

    fn read_opening<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        if let Some(thoughts) = text.strip_prefix(THINKING_BEGINS) {
            self.state = ScannerState::Thinking;
            return Some(thoughts);
        }
        let fenced = text.strip_prefix("```");
        let object = fenced.map_or(text, |rest| rest.trim_start_matches(char::is_alphanumeric));
        let object = object.trim_start();
        let is_opening =
            object.is_empty() || ["```", THINKING_BEGINS].iter().any(|mark| mark.starts_with(text));
        match object.strip_prefix('{') {
            _ if text.len() - object.len() > OPENING_BYTES_MAX => self.finish(),
            Some(inside) => {
                self.state = ScannerState::Key;
                Some(inside)
            }
            None if is_opening => None,
            None => self.finish(),
        }
    }

    fn read_thinking<'t>(
        &mut self,
        text: &'t str,
        found: &mut Vec<AnswerPiece>,
    ) -> Option<&'t str> {
        let (thought, rest) = match text.split_once(THINKING_ENDS) {
            Some(parts) => {
                self.state = ScannerState::Opening;
                parts
            }
            // The end of the text may be the beginning of the mark.
            None => {
                let is_begun = |at: &usize| THINKING_ENDS.starts_with(&text[*at..]);
                text.split_at(text.rfind('<').filter(is_begun).unwrap_or(text.len()))
            }
        };
        if !thought.is_empty() {
            found.push(AnswerPiece::Thought(thought.to_owned()));
        }
        (rest.len() < text.len()).then_some(rest)
    }

    /// Reads a whole string of limited length.
    fn read_word<'t>(&mut self, text: &'t str) -> Option<(String, &'t str)> {
        let mut words = Deserializer::from_str(text).into_iter::<String>();
        match words.next()? {
            Ok(word) if words.byte_offset() <= WORD_BYTES_MAX => {
                Some((word, &text[words.byte_offset()..]))
            }
            Err(error) if error.is_eof() && text.len() < WORD_BYTES_MAX => None,
            _ => self.finish(),
        }
    }

    /// Reads the reply as far as its characters are complete. Unescaped control characters are
    /// accepted: small models forget to escape them in long replies.
    fn read_reply<'t>(&mut self, text: &'t str, found: &mut Vec<AnswerPiece>) -> Option<&'t str> {
        let (mut reply, mut rest) = (String::new(), text);
        let next = loop {
            let (plain, marked) = rest.split_at(rest.find(['"', '\\']).unwrap_or(rest.len()));
            reply.push_str(plain);
            rest = marked;
            if let Some(after) = rest.strip_prefix('"') {
                self.state = ScannerState::AfterValue;
                break Some(after);
            }
            let decoded = ESCAPE_BYTES.iter().find_map(|bytes| {
                let (escape, after) = rest.split_at_checked(*bytes)?;
                Some((serde_json::from_str::<String>(&format!("\"{escape}\"")).ok()?, after))
            });
            match decoded {
                Some((character, after)) => (reply.push_str(&character), rest = after),
                None if rest.len() < ESCAPE_BYTES[2] => break None,
                None => break self.finish(),
            };
        };
        if !reply.is_empty() {
            found.push(AnswerPiece::Reply(reply));
        }
        next.or_else(|| (rest.len() < text.len()).then_some(rest))
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

    /// Returns true at the comma or brace after a value; reads any other character.
    fn ends_value(&mut self, c: char) -> bool {
        let is_end = self.depth == 0 && !self.in_string && matches!(c, ',' | '}');
        if !is_end {
            self.read_char(c);
        }
        is_end
    }
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
    fn strings_are_decoded_as_json_says() {
        let rows = [
            (r#"""#, ""),
            (r#"Grüße 東京""#, "Grüße 東京"),
            (r#"\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#"\u00e9\u6771\uD83D\ude00""#, "é東😀"),
            (r#"a\u"#, "a"),
            ("two\nlines\"", "two\nlines"),
        ];
        for (source, want) in rows {
            check(&format!(r#"{{"reply":"{source}"#), want, &[]);
        }
        let rows = [r"\x", r"\u00g0", r"\ud83d.", r#"\ud83d""#, r"\ud83d\n", r"\ud83dA", r"\ude00"];
        for source in rows {
            check(&format!(r#"{{"reply":"a{source}","tool":"x"}}"#), "a", &[]);
        }
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
