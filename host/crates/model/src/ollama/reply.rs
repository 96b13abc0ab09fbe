//! Converts a finished answer into a [`Reply`].
//!
//! Whole and streamed answers both end here: a whole answer is one piece, a streamed one many of
//! the same form.

use serde_json::{Map, Value, json};

use crate::{
    chat::{AssistantMessage, CallRequest, Delta, Finish, Message, Opaque, Reply, Usage},
    wire::{
        answer::{other_reason, text, tokens},
        conversation::arguments_text,
        unique_ids,
    },
};

/// Most calls in one answer. No session runs more.
const CALLS_MAX: usize = 4096;

/// Why a piece of an answer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PieceError {
    /// The answer has no message.
    #[error("there is no message in the answer")]
    NoMessage,
    /// A call has no function object.
    #[error("a call is not an object")]
    NotAnObject,
    /// There are more than [`CALLS_MAX`] calls.
    #[error("more than {CALLS_MAX} calls")]
    TooMany,
}

/// An answer of the server, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// True once the server has marked the answer as complete.
    pub(super) is_done: bool,
    content: String,
    thinking: String,
    calls: Vec<Value>,
    done_reason: Option<String>,
    usage: Option<Usage>,
}

impl Finished {
    /// Reads an answer that came in one piece.
    pub(super) fn of(
        mut answer: Value,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Self, PieceError> {
        if !answer.get("message").is_some_and(Value::is_object) {
            return Err(PieceError::NoMessage);
        }
        let mut finished = Self::default();
        finished.take(&mut answer)?.into_iter().for_each(on_delta);
        Ok(finished)
    }

    /// Adds a piece of the answer and returns its deltas.
    pub(super) fn take(&mut self, piece: &mut Value) -> Result<Vec<Delta>, PieceError> {
        self.is_done |= piece.get("done") == Some(&Value::Bool(true));
        let reason = piece.get("done_reason").and_then(Value::as_str);
        self.done_reason = reason.map(str::to_owned).or(self.done_reason.take());
        self.usage = usage(piece).or(self.usage);
        let Some(message) = piece.get_mut("message") else { return Ok(Vec::new()) };
        let begun = match message.get_mut("tool_calls").map(Value::take) {
            Some(Value::Array(calls)) => self.take_calls(calls)?,
            _ => Vec::new(),
        };
        let (thinking, content) = (text(message, "thinking"), text(message, "content"));
        self.thinking.push_str(thinking);
        self.content.push_str(content);
        let words = [Delta::Reasoning(thinking.to_owned()), Delta::Text(content.to_owned())];
        Ok(words.into_iter().filter(|words| !is_empty(words)).chain(begun).collect())
    }

    fn take_calls(&mut self, calls: Vec<Value>) -> Result<Vec<Delta>, PieceError> {
        if !calls.iter().all(|call| call.get("function").is_some_and(Value::is_object)) {
            return Err(PieceError::NotAnObject);
        }
        if self.calls.len() + calls.len() > CALLS_MAX {
            return Err(PieceError::TooMany);
        }
        let begun = calls.iter().map(|call| Delta::CallBegun { name: name_of(call).to_owned() });
        let begun = begun.collect();
        self.calls.extend(calls);
        Ok(begun)
    }

    /// Returns the message in the form of a whole answer.
    fn message(self) -> Value {
        let mut message = Map::from_iter([
            ("role".to_owned(), json!("assistant")),
            ("content".to_owned(), json!(self.content)),
        ]);
        if !self.thinking.is_empty() {
            message.insert("thinking".to_owned(), json!(self.thinking));
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(self.calls));
        }
        Value::Object(message)
    }
}

/// Converts a finished answer. Ids that are missing or that the conversation already contains are
/// replaced by new ones; `origin` marks the server's own form.
pub(super) fn reply(finished: Finished, conversation: &[Message], origin: String) -> Reply {
    let given: Vec<Option<&str>> = finished.calls.iter().map(|c| Some(text(c, "id"))).collect();
    let ids = unique_ids(&given, conversation);
    let calls: Vec<CallRequest> =
        finished.calls.iter().zip(ids).map(|(own, id)| call(own, id)).collect();
    let finish = reason(finished.done_reason.as_deref(), !calls.is_empty());
    let (text, usage) = (finished.content.clone(), finished.usage);
    let body = finished.message();
    let message = AssistantMessage { text, calls, opaque: Some(Opaque { origin, body }) };
    Reply { message, finish, usage }
}

/// Converts a call of the server, under the given id.
pub(super) fn call(own: &Value, id: String) -> CallRequest {
    let arguments = arguments_text(own.pointer("/function/arguments"));
    CallRequest { id, name: name_of(own).to_owned(), arguments }
}

fn name_of(call: &Value) -> &str {
    call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default()
}

fn is_empty(words: &Delta) -> bool {
    matches!(words, Delta::Text(text) | Delta::Reasoning(text) if text.is_empty())
}

/// The server sends `stop` even if the model requests tool calls.
fn reason(done_reason: Option<&str>, has_calls: bool) -> Finish {
    match done_reason {
        None | Some("stop") if has_calls => Finish::ToolCalls,
        None | Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some(other) => other_reason(other),
    }
}

/// The last piece contains the token counts. The server omits the prompt's count if the whole
/// prompt came from its cache.
fn usage(piece: &Value) -> Option<Usage> {
    piece.get("eval_count").or_else(|| piece.get("prompt_eval_count"))?;
    Some(Usage {
        input_tokens: tokens(piece, "/prompt_eval_count"),
        output_tokens: tokens(piece, "/eval_count"),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, Finish::Stop),
            (Some("stop"), false, Finish::Stop),
            (Some("stop"), true, Finish::ToolCalls),
            (Some("length"), true, Finish::Length),
            (Some("load"), false, Finish::Other("load".to_owned())),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(reason(given, has_calls), want);
        }
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        let call = json!({ "function": { "name": "x" } });
        let rows = [
            (json!(["x"]), PieceError::NotAnObject),
            (json!([{ "function": "x" }]), PieceError::NotAnObject),
            (json!(vec![call; CALLS_MAX + 1]), PieceError::TooMany),
        ];
        for (calls, want) in rows {
            let mut piece = json!({ "message": { "tool_calls": calls } });
            assert_eq!(Finished::default().take(&mut piece), Err(want));
        }
    }
}
