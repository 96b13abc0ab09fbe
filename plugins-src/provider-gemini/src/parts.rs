//! Collects the parts of an answer as they arrive.
//!
//! Text arrives in many parts and is joined; a signature stays on the part that contained it. A
//! part of an unknown kind is kept, so that it is sent back with its message.

use sallyport_sdk::{
    prelude::{Value, json},
    provider::{self, ProviderError, ToolCall},
};

/// Maximum number of parts in an answer. No session makes more calls.
const PARTS_MAX: usize = 4_096;

/// The only fields of a plain text part.
const PLAIN: [&str; 2] = ["text", "thought"];

/// The parts so far.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<Value>);

impl Parts {
    /// Adds a part, and shows its text.
    ///
    /// # Errors
    ///
    /// The value is not a part, or there are too many parts.
    pub(crate) fn take(&mut self, part: Value) -> Result<(), ProviderError> {
        if !part.is_object() {
            return Err(ProviderError::Refused("the service sent a part that is none".to_owned()));
        }
        show(&part);
        let is_full = self.0.len() == PARTS_MAX;
        let last = self.0.last_mut().filter(|last| continues(last, &part));
        match last.and_then(|last| last.get_mut("text")) {
            Some(Value::String(words)) => words.push_str(text(&part, "text")),
            _ if is_full => {
                let message = format!("the service sent more than {PARTS_MAX} parts");
                return Err(ProviderError::Refused(message));
            }
            _ => self.0.push(part),
        }
        Ok(())
    }

    /// Returns the text for the user, without thoughts.
    pub(crate) fn text(&self) -> String {
        self.0.iter().filter(|part| !is_thought(part)).map(|part| text(part, "text")).collect()
    }

    /// Returns the calls, each with a unique id.
    pub(crate) fn calls(&self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for (at, found) in self::calls(&self.0).enumerate() {
            let given = text(found, "id");
            let is_known = calls.iter().any(|call| call.id == given);
            let id = match given {
                id if id.is_empty() || is_known => format!("gemini-{}", at + 1),
                id => id.to_owned(),
            };
            calls.push(call(found, id));
        }
        calls
    }

    /// Returns all parts as JSON.
    pub(crate) fn into_json(self) -> Value {
        json!({ "parts": self.0 })
    }
}

/// Returns the calls among parts, in order.
pub(crate) fn calls(parts: &[Value]) -> impl Iterator<Item = &Value> {
    parts.iter().filter_map(|part| part.get("functionCall")).filter(|call| call.is_object())
}

/// Converts a call. Missing arguments become an empty object.
pub(crate) fn call(call: &Value, id: String) -> ToolCall {
    let arguments = call.get("args").filter(|args| !args.is_null());
    let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
    ToolCall { id, name: text(call, "name").to_owned(), arguments }
}

/// Returns a text field of an object, or an empty string.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn show(part: &Value) {
    let words = text(part, "text");
    match is_thought(part) {
        _ if words.is_empty() => {}
        true => provider::reasoning(words),
        false => provider::text(words),
    }
}

fn is_thought(part: &Value) -> bool {
    part.get("thought") == Some(&Value::Bool(true))
}

/// Returns whether a part continues the text of the last one.
fn continues(last: &Value, part: &Value) -> bool {
    is_plain(last) && is_plain(part) && is_thought(last) == is_thought(part)
}

/// Returns whether a part is text without other fields, such as a signature.
fn is_plain(part: &Value) -> bool {
    let fields = part.as_object().filter(|_| part.get("text").is_some_and(Value::is_string));
    fields.is_some_and(|fields| fields.keys().all(|key| PLAIN.contains(&key.as_str())))
}
