//! Reads a model's text as an answer of the protocol.
//!
//! Small models write a fence around the object, a sentence before it, line breaks inside strings,
//! arguments as a string. All of these have one meaning and are accepted. An ambiguous answer is
//! refused because an unintended call is worse than asking again.

use sallyport_contract::json::{self, JsonError};
use serde_json::{Map, Value};

use super::scanner::NestingState;

/// Longest answer that is read as JSON, in bytes. The arguments of a call are never that long.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Most characters of an unknown key that an error repeats.
const KEY_CHARS_MAX: usize = 40;

/// The start and end of thinking within a model's text, where the server does not separate the two.
pub(super) const THINKING_BEGINS: &str = "<think>";
pub(super) const THINKING_ENDS: &str = "</think>";

/// The tags that some models were trained to write around a call.
const TAG: &str = "<tool_call>";
const TAG_END: &str = "</tool_call>";

/// Keys under which models write the arguments of a call.
const ARGUMENTS: [&str; 4] = ["args", "arguments", "input", "parameters"];

/// Keys under which models think. No other key is ignored: tool arguments written next to the
/// tool's name would be lost silently.
const THOUGHTS: [&str; 7] =
    ["analysis", "explanation", "rationale", "reasoning", "thinking", "thought", "thoughts"];

/// The content of an answer.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct JsonAnswer {
    /// The text for the user.
    pub(super) reply: String,
    /// The requested calls, in the model's order.
    pub(super) calls: Vec<ParsedToolCall>,
}

/// A call that the model requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedToolCall {
    pub(super) name: String,
    /// The JSON text of an object.
    pub(super) arguments: String,
}

/// Why an answer cannot be read. The messages are for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerParseError {
    /// The answer is blank.
    #[error("the answer was empty")]
    Blank,
    /// The answer is longer than [`ANSWER_BYTES_MAX`].
    #[error("the answer was longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The answer contains no object of the protocol.
    #[error("there was no JSON object with \"reply\" or \"tool\" in it")]
    NoObject,
    /// An object is not closed.
    #[error("a JSON object in it was not closed")]
    Unclosed,
    /// An object is not JSON.
    #[error("{0}")]
    NotJson(JsonError),
    /// There is text around a call. The call may be an example, which must not be carried out.
    #[error("there was other text around the call of a tool, and a call has to stand alone")]
    SurroundedByText,
    /// There is more than one object.
    #[error("there were {count} JSON objects in it, and one is wanted")]
    MultipleObjects {
        /// The number of objects.
        count: usize,
    },
    /// A key has no meaning here.
    #[error("the key {key:?} has no meaning here; arguments of a tool belong into \"args\"")]
    Key {
        /// The key.
        key: String,
    },
    /// The answer has both `tool` and `tools`.
    #[error("it had both \"tool\" and \"tools\"")]
    BothForms,
    /// A value has the wrong type.
    #[error("{key:?} was not {wanted}")]
    Type {
        /// The key of the value.
        key: &'static str,
        /// The expected type.
        wanted: &'static str,
    },
}

/// Reads a whole answer.
pub(super) fn parse_answer(text: &str) -> Result<JsonAnswer, AnswerParseError> {
    if without_thinking(text).trim().is_empty() {
        return Err(AnswerParseError::Blank);
    }
    if text.len() > ANSWER_BYTES_MAX {
        return Err(AnswerParseError::TooLong);
    }
    let AnswerObjects { mut objects, is_alone, is_listed } = find_objects(without_thinking(text))?;
    // A repeated object is the same answer, except in a list, where it is a second call.
    if !is_listed {
        objects.dedup();
    }
    let answers: Vec<JsonAnswer> =
        objects.into_iter().map(answer_from_object).collect::<Result<_, _>>()?;
    if !is_alone && answers.iter().any(|answer| !answer.calls.is_empty()) {
        return Err(AnswerParseError::SurroundedByText);
    }
    let count = answers.len();
    match (answers.into_iter().reduce(JsonAnswer::merge_with), count) {
        (None, _) => Err(AnswerParseError::NoObject),
        (Some(answer), count) if count == 1 || (is_listed && is_alone) => Ok(answer),
        (Some(_), count) => Err(AnswerParseError::MultipleObjects { count }),
    }
}

impl JsonAnswer {
    /// Combines two objects of one list.
    fn merge_with(mut self, other: Self) -> Self {
        let is_first = self.reply.is_empty();
        self.reply.push_str(if is_first || other.reply.is_empty() { "" } else { "\n\n" });
        self.reply.push_str(&other.reply);
        self.calls.extend(other.calls);
        self
    }
}

/// Returns an answer without its leading thinking. Objects in there are drafts.
pub(super) fn without_thinking(text: &str) -> &str {
    let mut without_thoughts = text;
    while let Some(thinking) = without_thoughts.trim_start().strip_prefix(THINKING_BEGINS) {
        without_thoughts =
            thinking.split_once(THINKING_ENDS).map_or("", |(_, without_thoughts)| without_thoughts);
    }
    without_thoughts
}

/// The objects of the protocol in a text.
struct AnswerObjects {
    objects: Vec<Map<String, Value>>,
    /// True if the text contains only these objects and the usual framing.
    is_alone: bool,
    /// True if the objects are in a list or in tags, which allow more than one.
    is_listed: bool,
}

/// Finds the objects of the protocol in a text. Any unreadable object is an error: the text after
/// it, or inside it, may be a part of it.
fn find_objects(text: &str) -> Result<AnswerObjects, AnswerParseError> {
    let (mut objects, mut around) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        around.push_str(&rest[..start]);
        rest = &rest[start..];
        if !rest[1..].trim_start().starts_with('"') {
            around.push('{');
            rest = &rest[1..];
            continue;
        }
        let (object, after) = rest.split_at(object_end(rest).ok_or(AnswerParseError::Unclosed)?);
        let value = json::parse_json(&repair_object(object), usize::MAX)
            .map_err(AnswerParseError::NotJson)?;
        match as_protocol_object(value) {
            Some(object) => objects.push(object),
            None => around.push_str(object),
        }
        around.push('\n');
        rest = after;
    }
    around.push_str(rest);
    let is_listed = around.trim_start().starts_with('[') || around.contains(TAG);
    Ok(AnswerObjects { objects, is_alone: is_framing(&around), is_listed })
}

/// Returns true if the text is only framing that models put around an object: a fence, tags, the
/// punctuation of a list.
fn is_framing(around: &str) -> bool {
    let is_frame = |line: &str| {
        let line = line.replace(TAG, "").replace(TAG_END, "");
        let line = line.trim();
        let language = line.strip_prefix("```").unwrap_or(line);
        let is_fence = language.len() < line.len() && language.chars().all(char::is_alphanumeric);
        is_fence || line.chars().all(|c| matches!(c, '[' | ']' | ',' | ' '))
    };
    around.lines().all(is_frame)
}

/// Returns the end of the object at the start of a text.
fn object_end(text: &str) -> Option<usize> {
    let mut nest = NestingState::default();
    let closes = |(_, c): &(usize, char)| {
        nest.read_char(*c);
        nest.depth == 0
    };
    text.char_indices().find(closes).map(|(at, c)| at + c.len_utf8())
}

/// Repairs unambiguous mistakes of small models: unescaped control characters in strings, and
/// commas after the last item.
fn repair_object(object: &str) -> String {
    let (mut nest, mut out) = (NestingState::default(), String::with_capacity(object.len()));
    let mut comma = None;
    for c in object.chars() {
        match c {
            c if nest.in_string && c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '}' | ']' if !nest.in_string => {
                if let Some(at) = comma {
                    out.truncate(at);
                }
                out.push(c);
            }
            c => out.push(c),
        }
        if nest.in_string || !c.is_ascii_whitespace() {
            comma = (c == ',' && !nest.in_string).then(|| out.len() - 1);
        }
        nest.read_char(c);
    }
    out
}

fn as_protocol_object(value: Value) -> Option<Map<String, Value>> {
    let Value::Object(object) = value else { return None };
    let object = normalize_keys(object);
    ["reply", "tool", "tools"].iter().any(|key| object.contains_key(*key)).then_some(object)
}

/// Renames the parts of a call to the names of this protocol. Models fall back on names that they
/// were trained on.
fn normalize_keys(mut object: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(function)) = object.get("function").cloned() {
        for key in ["function", "type", "id"] {
            object.remove(key);
        }
        object.extend(function);
    }
    if !object.contains_key("tools")
        && let Some(calls) = object.remove("tool_calls")
    {
        object.insert("tools".to_owned(), calls);
    }
    let Some(key) = ARGUMENTS.into_iter().find(|key| object.contains_key(*key)) else {
        return object;
    };
    if !object.contains_key("tool") && object.get("name").is_some_and(Value::is_string) {
        let name = object.remove("name").unwrap_or_default();
        object.insert("tool".to_owned(), name);
    }
    if object.contains_key("tool")
        && !object.contains_key("args")
        && let Some(arguments) = object.remove(key)
    {
        object.insert("args".to_owned(), arguments);
    }
    object
}

fn answer_from_object(mut object: Map<String, Value>) -> Result<JsonAnswer, AnswerParseError> {
    let reply = optional_text(object.remove("reply"), "reply")?;
    let calls = match (object.remove("tool"), object.remove("tools")) {
        (Some(_), Some(_)) => return Err(AnswerParseError::BothForms),
        (Some(name), None) => take_call(name, &mut object)?.into_iter().collect(),
        (None, Some(list)) => parse_calls(list)?,
        (None, None) => Vec::new(),
    };
    // Next to a reply without calls, any other key is allowed as thinking.
    if !calls.is_empty() {
        check_no_unknown_keys(&object)?;
    }
    Ok(JsonAnswer { reply, calls })
}

fn parse_calls(list: Value) -> Result<Vec<ParsedToolCall>, AnswerParseError> {
    let items = match list {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        _ => return Err(AnswerParseError::Type { key: "tools", wanted: "a list" }),
    };
    items.into_iter().map(parse_call_item).collect()
}

fn parse_call_item(item: Value) -> Result<ParsedToolCall, AnswerParseError> {
    let Value::Object(item) = item else {
        return Err(AnswerParseError::Type { key: "tools", wanted: "a list of objects" });
    };
    let mut item = normalize_keys(item);
    let name = item.remove("tool").unwrap_or_default();
    let call = take_call(name, &mut item)?;
    check_no_unknown_keys(&item)?;
    call.ok_or(AnswerParseError::Type { key: "tool", wanted: "the name of a tool" })
}

/// Takes a call out of its object. A blank name means that there is no call.
fn take_call(
    name: Value,
    object: &mut Map<String, Value>,
) -> Result<Option<ParsedToolCall>, AnswerParseError> {
    let name = optional_text(Some(name), "tool")?.trim().to_owned();
    let arguments = parse_arguments(object.remove("args").unwrap_or_default())?;
    Ok((!name.is_empty()).then_some(ParsedToolCall { name, arguments }))
}

fn parse_arguments(value: Value) -> Result<String, AnswerParseError> {
    let no_object = AnswerParseError::Type { key: "args", wanted: "a JSON object" };
    match value {
        Value::Null => Ok("{}".to_owned()),
        Value::Object(_) => Ok(value.to_string()),
        Value::String(text) if text.trim().is_empty() => Ok("{}".to_owned()),
        Value::String(text) => match json::parse_json(&text, ANSWER_BYTES_MAX) {
            Ok(Value::Object(_)) => Ok(text),
            _ => Err(no_object),
        },
        _ => Err(no_object),
    }
}

fn optional_text(value: Option<Value>, key: &'static str) -> Result<String, AnswerParseError> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(AnswerParseError::Type { key, wanted: "a string" }),
    }
}

fn check_no_unknown_keys(object: &Map<String, Value>) -> Result<(), AnswerParseError> {
    match object.keys().find(|key| !THOUGHTS.contains(&key.as_str())) {
        Some(key) => Err(AnswerParseError::Key { key: key.chars().take(KEY_CHARS_MAX).collect() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, reply: &str, calls: &[(&str, &str)]) {
        let wanted = |(name, arguments): &(&str, &str)| ParsedToolCall {
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        let want =
            JsonAnswer { reply: reply.to_owned(), calls: calls.iter().map(wanted).collect() };
        assert_eq!(parse_answer(text), Ok(want), "{text}");
    }

    #[test]
    fn replies_and_calls_are_read() {
        check(r#"{"reply":"hi"}"#, "hi", &[]);
        check(r#"{"reply":""}"#, "", &[]);
        check(
            r#"{"tool":"get_time","args":{"zone":"UTC"},"reply":"Let me check"}"#,
            "Let me check",
            &[("get_time", r#"{"zone":"UTC"}"#)],
        );
        check(
            r#"{"tools":[{"tool":"a","args":{"n":1}},{"tool":"b"}],"reply":"both"}"#,
            "both",
            &[("a", r#"{"n":1}"#), ("b", "{}")],
        );
        check(r#"{"tools":[],"reply":"hi"}"#, "hi", &[]);
        check(r#"{"tool":null,"args":{},"reply":"hi"}"#, "hi", &[]);
        check(r#"{"tool":"","tools_used":1,"reply":"hi"}"#, "hi", &[]);
        check(r#"{"thought":{"deep":[1]},"reply":"hi"}"#, "hi", &[]);
    }

    #[test]
    fn small_slips_are_forgiven() {
        check("```json\n{\"reply\":\"hi\"}\n```", "hi", &[]);
        check("Sure, fn main() {} it is: {\"reply\":\"hi\"} Anything else?", "hi", &[]);
        check(r#"{"thought":"hm","tool":"x"}"#, "", &[("x", "{}")]);
        check(r#"{"tool":"x","args":{"a":[1,],},}"#, "", &[("x", r#"{"a":[1]}"#)]);
        check("{\"reply\":\"a,}\" , \n}", "a,}", &[]);
        check(r#"{"name":"x","arguments":{"a":1}}"#, "", &[("x", r#"{"a":1}"#)]);
        check(r#"{"name":"x","parameters":{}}"#, "", &[("x", "{}")]);
        check(r#"{"tool":"x","arguments":{"a":1}}"#, "", &[("x", r#"{"a":1}"#)]);
        check(
            r#"{"type":"function","function":{"name":"x","arguments":"{\"a\":1}"}}"#,
            "",
            &[("x", r#"{"a":1}"#)],
        );
        check(
            r#"{"tool_calls":[{"name":"x","arguments":{}},{"tool":"y"}]}"#,
            "",
            &[("x", "{}"), ("y", "{}")],
        );
        let tagged = |call: &str| format!("<tool_call>\n{call}\n</tool_call>\n");
        let (x, y) = (r#"{"name":"x","arguments":{}}"#, r#"{"tool":"y"}"#);
        check(&tagged(x), "", &[("x", "{}")]);
        check(&(tagged(x) + &tagged(y)), "", &[("x", "{}"), ("y", "{}")]);
        check(&format!("[{x}, {y}]"), "", &[("x", "{}"), ("y", "{}")]);
        check(r#"{"reply":"a"} {"reply":"a"}"#, "a", &[]);
        let thinking = "<think>{\"reply\":\"no\"} or </think>\n";
        check(&format!("{thinking}{thinking}{{\"reply\":\"hi\"}}"), "hi", &[]);
        check(r#"[{"tool":"x"}]"#, "", &[("x", "{}")]);
        check("{\"reply\":\"two\nlines\tand a tab\"}", "two\nlines\tand a tab", &[]);
        check(r#"{"tool":" x ","args":"{\"a\":1}"}"#, "", &[("x", r#"{"a":1}"#)]);
        for none in ["null", "\"\"", "\" \"", "{}"] {
            check(&format!(r#"{{"tool":"x","args":{none}}}"#), "", &[("x", "{}")]);
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        let arguments = r#"{"id":18446744073709551615,"n":-9223372036854775808}"#;
        check(&format!(r#"{{"tool":"x","args":{arguments}}}"#), "", &[("x", arguments)]);
    }

    #[test]
    fn what_has_two_meanings_or_none_is_refused() {
        let not_json =
            |text: &str| AnswerParseError::NotJson(json::parse_json(text, usize::MAX).unwrap_err());
        let kind = |key, wanted| AnswerParseError::Type { key, wanted };
        let key = |key: &str| AnswerParseError::Key { key: key.to_owned() };
        let rows = [
            (" \n", AnswerParseError::Blank),
            ("<think>{\"reply\":\"hi\"}", AnswerParseError::Blank),
            ("<think>hm</think> ", AnswerParseError::Blank),
            ("It is noon.", AnswerParseError::NoObject),
            (r#"{"time":"noon"}"#, AnswerParseError::NoObject),
            (r#"{"answer":{"reply":"hi"}}"#, AnswerParseError::NoObject),
            ("{'reply':'hi'}", AnswerParseError::NoObject),
            (r#"{"reply":"hi"#, AnswerParseError::Unclosed),
            (r#"{"tool":"a","args":{"tool":"b"}"#, AnswerParseError::Unclosed),
            (
                r#"{"tool":"a","args":{"tool":"b"} oops}"#,
                not_json(r#"{"tool":"a","args":{"tool":"b"} oops}"#),
            ),
            (r#"{"reply":"say "hi" now"}"#, not_json(r#"{"reply":"say "hi" now"}"#)),
            (r#"{"reply":"a","reply":"b"}"#, not_json(r#"{"reply":"a","reply":"b"}"#)),
            (r#"{"reply":"\ud83d"}"#, not_json(r#"{"reply":"\ud83d"}"#)),
            (r#"{"tool":"a"}{"tool":"b"}"#, AnswerParseError::MultipleObjects { count: 2 }),
            (
                r#"{"reply":"a"} or {"reply":"b"} or {"reply":"c"}"#,
                AnswerParseError::MultipleObjects { count: 3 },
            ),
            (
                r#"{"tool":"a","args":{}} is how a tool is used."#,
                AnswerParseError::SurroundedByText,
            ),
            (r#"To use it, write {"tool":"a","args":{}}"#, AnswerParseError::SurroundedByText),
            ("For example:\n```json\n{\"tool\":\"a\"}\n```", AnswerParseError::SurroundedByText),
            (r#"`{"tool":"a"}`"#, AnswerParseError::SurroundedByText),
            (r#"Given {"city":"Rome"}: {"tool":"a"}"#, AnswerParseError::SurroundedByText),
            (
                r#"I called <tool_call>{"name":"a","arguments":{}}</tool_call> before."#,
                AnswerParseError::SurroundedByText,
            ),
            (r#"{"name":"Rome","size":3}"#, AnswerParseError::NoObject),
            (r#"{"tool":"a","tools":[]}"#, AnswerParseError::BothForms),
            (r#"{"tool":"a","city":"Rome"}"#, key("city")),
            (r#"{"tool":"a","args":{},"arguments":{"x":1}}"#, key("arguments")),
            (r#"{"tools":[{"tool":"a","reply":"x"}]}"#, key("reply")),
            (r#"{"tools":[{"tool":"a"}],"args":{}}"#, key("args")),
            (r#"{"reply":7}"#, kind("reply", "a string")),
            (r#"{"tool":{"name":"a"}}"#, kind("tool", "a string")),
            (r#"{"tool":"a","args":[1]}"#, kind("args", "a JSON object")),
            (r#"{"tool":"a","args":"Rome"}"#, kind("args", "a JSON object")),
            (r#"{"tool":"a","args":"{\"x\":1,\"x\":2}"}"#, kind("args", "a JSON object")),
            (r#"{"tools":{"tool":"a"}}"#, kind("tools", "a list")),
            (r#"{"tools":["a"]}"#, kind("tools", "a list of objects")),
            (r#"{"tools":[{"args":{}}]}"#, kind("tool", "the name of a tool")),
        ];
        for (text, want) in rows {
            assert_eq!(parse_answer(text), Err(want), "{text}");
        }
        assert_eq!(parse_answer(&"x".repeat(ANSWER_BYTES_MAX + 1)), Err(AnswerParseError::TooLong));
        let long_key = format!(r#"{{"tool":"a","{}":1}}"#, "k".repeat(1000));
        assert!(parse_answer(&long_key).unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn depth_and_length_cost_little() {
        for piece in ["{", "{\"", "{\"a\":", "{\"a\":[", "{}", "{\"\\\"", "{\"a\":1}"] {
            assert!(
                parse_answer(&piece.repeat(ANSWER_BYTES_MAX / piece.len())).is_err(),
                "{piece}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in r#"([{}\[\]":, \\n]|reply|tool|args|\PC){0,60}"#) {
            let _ = parse_answer(&text);
        }

        #[test]
        fn what_serde_writes_is_read(reply in any::<String>(), around in "[a-z \n`{}]{0,9}") {
            let text = format!("{around}{}{around}", serde_json::json!({ "reply": reply }));
            prop_assert_eq!(parse_answer(&text).unwrap().reply, reply);
        }
    }
}
