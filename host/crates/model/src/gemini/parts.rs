//! Collects the parts of an answer while they arrive.
//!
//! Consecutive texts are joined; a signature stays on the part that brought it. A part of an
//! unknown kind is kept like any other: it belongs to the message and is sent back with it.

use serde_json::Value;

use crate::{
    chat::{ModelCallRequest, ReplyDelta},
    fit::conversation::arguments_text,
    wire::{AnswerError, answer::text_field},
};

/// Most parts in one answer. No session runs more calls.
const PARTS_MAX: usize = 4096;

/// The error for a part that is not a JSON object.
const NOT_AN_OBJECT: &str = "a part is not an object";

/// The only fields of a part of plain text.
const PLAIN_TEXT_FIELDS: [&str; 2] = ["text", "thought"];

/// The parts received so far.
#[derive(Debug, Default)]
pub(super) struct GeminiPartList(Vec<Value>);

impl GeminiPartList {
    /// Adds a part and returns its delta, if any.
    pub(super) fn add_part(&mut self, part: Value) -> Result<Option<ReplyDelta>, AnswerError> {
        if !part.is_object() {
            return Err(NOT_AN_OBJECT.into());
        }
        let delta = part_delta(&part);
        let is_full = self.0.len() == PARTS_MAX;
        let last = self.0.last_mut().filter(|last| is_continuation(last, &part));
        match last.and_then(|last| last.get_mut("text")) {
            Some(Value::String(words)) => words.push_str(text_field(&part, "text")),
            _ if is_full => return Err(format!("more than {PARTS_MAX} parts").into()),
            _ => self.0.push(part),
        }
        Ok(delta)
    }

    /// Returns the text of the parts, without thoughts.
    pub(super) fn text(&self) -> String {
        self.0
            .iter()
            .filter(|part| !is_thought(part))
            .map(|part| text_field(part, "text"))
            .collect()
    }

    /// Returns the finished parts.
    pub(super) fn into_vec(self) -> Vec<Value> {
        self.0
    }
}

/// Returns the calls among parts, in order.
pub(super) fn function_calls(parts: &[Value]) -> impl Iterator<Item = &Value> {
    parts.iter().filter_map(|part| part.get("functionCall")).filter(|call| call.is_object())
}

/// Converts a call, under the given id.
pub(super) fn convert_call(call: &Value, id: String) -> ModelCallRequest {
    let name = text_field(call, "name").to_owned();
    ModelCallRequest { id, name, arguments: arguments_text(call.get("args")) }
}

fn part_delta(part: &Value) -> Option<ReplyDelta> {
    if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
        return Some(ReplyDelta::CallBegun { name: text_field(call, "name").to_owned() });
    }
    let kind = if is_thought(part) { ReplyDelta::reasoning } else { ReplyDelta::text };
    Some(text_field(part, "text"))
        .filter(|words| !words.is_empty())
        .map(|words| kind(words.to_owned()))
}

fn is_thought(part: &Value) -> bool {
    part.get("thought") == Some(&Value::Bool(true))
}

/// Returns true if a part continues the text or the thought of the last one.
fn is_continuation(last: &Value, part: &Value) -> bool {
    is_plain_text(last) && is_plain_text(part) && is_thought(last) == is_thought(part)
}

/// Returns true for a text without other fields, above all without a signature.
fn is_plain_text(part: &Value) -> bool {
    let fields = part.as_object().filter(|_| part.get("text").is_some_and(Value::is_string));
    fields.is_some_and(|fields| fields.keys().all(|key| PLAIN_TEXT_FIELDS.contains(&key.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(given: &[Value], want: &[Value], want_said: &[ReplyDelta]) {
        let mut parts = GeminiPartList::default();
        let delta = given.iter().filter_map(|part| parts.add_part(part.clone()).unwrap());
        assert_eq!(delta.collect::<Vec<_>>(), want_said);
        assert_eq!(parts.into_vec(), want);
    }

    #[test]
    fn text_grows_together_and_signatures_stay_where_they_were() {
        let word = |text: &str| json!({ "text": text });
        let thought = |text: &str| json!({ "text": text, "thought": true });
        let signed = |text: &str| json!({ "text": text, "thoughtSignature": "s" });
        let delta = |text: &str| ReplyDelta::Text { text: text.to_owned() };
        let mused = |text: &str| ReplyDelta::Reasoning { text: text.to_owned() };
        check(
            &[thought("a"), thought("b"), word("c"), json!({ "text": "d", "thought": false })],
            &[thought("ab"), word("cd")],
            &[mused("a"), mused("b"), delta("c"), delta("d")],
        );
        check(
            &[word("a"), signed("b"), word("c"), signed("")],
            &[word("a"), signed("b"), word("c"), signed("")],
            &[delta("a"), delta("b"), delta("c")],
        );
        let call = json!({ "functionCall": { "name": "x" }, "thoughtSignature": "s" });
        let other = json!({ "executableCode": { "code": "1" } });
        check(
            &[call.clone(), call.clone(), other.clone()],
            &[call.clone(), call, other],
            &[
                ReplyDelta::CallBegun { name: "x".to_owned() },
                ReplyDelta::CallBegun { name: "x".to_owned() },
            ],
        );
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        assert_eq!(GeminiPartList::default().add_part(json!("x")), Err(NOT_AN_OBJECT.into()));
        let mut parts = GeminiPartList::default();
        let flood = (0..=PARTS_MAX).find_map(|n| parts.add_part(json!({ "n": n })).err());
        assert_eq!(flood, Some("more than 4096 parts".into()));
    }
}
