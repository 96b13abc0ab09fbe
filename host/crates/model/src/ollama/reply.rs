//! Reads an answer and converts it into a [`ModelReply`].
//!
//! A whole answer is one piece, a streamed one many of the same form.

use serde_json::{Map, Value, json};

use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelReply, OpaqueMessage,
        ReplyDelta, TokenUsage,
    },
    fit::conversation::arguments_text,
    wire::{
        AnswerError, OnDelta, PartialAnswer,
        answer::{check_reported, event_object, other_finish_reason, text_field, token_count},
        unique_ids,
    },
};

/// Most calls in one answer. No session runs more.
const CALLS_MAX: usize = 4096;

/// The error for a call without a function object.
const NOT_AN_OBJECT: &str = "a call is not an object";

/// An answer of the server, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct OllamaAnswer {
    content: String,
    thinking: String,
    calls: Vec<Value>,
    done_reason: Option<String>,
    usage: Option<TokenUsage>,
}

impl OllamaAnswer {
    /// Adds a piece of the answer and returns its deltas.
    fn apply_piece(&mut self, piece: &mut Value) -> Result<Vec<ReplyDelta>, AnswerError> {
        let reason = piece.get("done_reason").and_then(Value::as_str);
        self.done_reason = reason.map(str::to_owned).or(self.done_reason.take());
        self.usage = read_usage(piece).or(self.usage);
        let Some(message) = piece.get_mut("message") else { return Ok(Vec::new()) };
        let begun = match message.get_mut("tool_calls").map(Value::take) {
            Some(Value::Array(calls)) => self.push_calls(calls)?,
            _ => Vec::new(),
        };
        let (thinking, content) = (text_field(message, "thinking"), text_field(message, "content"));
        self.thinking.push_str(thinking);
        self.content.push_str(content);
        let words = [
            ReplyDelta::Reasoning { text: thinking.to_owned() },
            ReplyDelta::Text { text: content.to_owned() },
        ];
        Ok(words.into_iter().filter(|words| !is_empty_delta(words)).chain(begun).collect())
    }

    fn push_calls(&mut self, calls: Vec<Value>) -> Result<Vec<ReplyDelta>, AnswerError> {
        if !calls.iter().all(|call| call.get("function").is_some_and(Value::is_object)) {
            return Err(NOT_AN_OBJECT.into());
        }
        if self.calls.len() + calls.len() > CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} calls").into());
        }
        let begun =
            calls.iter().map(|call| ReplyDelta::CallBegun { name: call_name(call).to_owned() });
        let begun = begun.collect();
        self.calls.extend(calls);
        Ok(begun)
    }

    /// Returns the message in the form of a whole answer.
    fn into_message(self) -> Value {
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

impl PartialAnswer for OllamaAnswer {
    fn apply_event(
        &mut self,
        _name: &str,
        data: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<bool, AnswerError> {
        let mut piece: Value = event_object(data)?;
        check_reported(&mut piece)?;
        self.apply_piece(&mut piece)?.into_iter().for_each(on_delta);
        Ok(piece.get("done") == Some(&Value::Bool(true)))
    }

    fn apply_whole(&mut self, mut answer: Value, on_delta: OnDelta<'_>) -> Result<(), AnswerError> {
        if !answer.get("message").is_some_and(Value::is_object) {
            return Err("there is no message in the answer".into());
        }
        self.apply_piece(&mut answer)?.into_iter().for_each(on_delta);
        Ok(())
    }

    fn into_reply(
        self: Box<Self>,
        conversation: &[ChatMessage],
        origin: String,
    ) -> Result<ModelReply, AnswerError> {
        let given: Vec<Option<&str>> =
            self.calls.iter().map(|call| Some(text_field(call, "id"))).collect();
        let calls = self.calls.iter().zip(unique_ids(&given, conversation));
        let calls: Vec<ModelCallRequest> =
            calls.map(|(provider_call, id)| convert_call(provider_call, id)).collect();
        let finish = finish_reason(self.done_reason.as_deref(), !calls.is_empty());
        let (text, usage) = (self.content.clone(), self.usage);
        let opaque = Some(OpaqueMessage { origin, body: self.into_message() });
        Ok(ModelReply { message: AssistantMessage { text, calls, opaque }, finish, usage })
    }
}

/// Converts a call of the server, under the given id.
pub(super) fn convert_call(provider_call: &Value, id: String) -> ModelCallRequest {
    let arguments = arguments_text(provider_call.pointer("/function/arguments"));
    ModelCallRequest { id, name: call_name(provider_call).to_owned(), arguments }
}

fn call_name(call: &Value) -> &str {
    call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default()
}

fn is_empty_delta(words: &ReplyDelta) -> bool {
    matches!(words, ReplyDelta::Text { text } | ReplyDelta::Reasoning { text } if text.is_empty())
}

/// The server sends `stop` even if the model requests tool calls.
fn finish_reason(done_reason: Option<&str>, has_calls: bool) -> FinishReason {
    match done_reason {
        None | Some("stop") if has_calls => FinishReason::ToolCalls,
        None | Some("stop") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(other) => other_finish_reason(other),
    }
}

/// The last piece contains the token counts. The server omits the prompt's count if the whole
/// prompt came from its cache.
fn read_usage(piece: &Value) -> Option<TokenUsage> {
    piece.get("eval_count").or_else(|| piece.get("prompt_eval_count"))?;
    Some(TokenUsage {
        input_tokens: token_count(piece, "/prompt_eval_count"),
        output_tokens: token_count(piece, "/eval_count"),
        ..TokenUsage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, FinishReason::Stop),
            (Some("stop"), false, FinishReason::Stop),
            (Some("stop"), true, FinishReason::ToolCalls),
            (Some("length"), true, FinishReason::Length),
            (Some("load"), false, FinishReason::Other("load".to_owned())),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(finish_reason(given, has_calls), want);
        }
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        let call = json!({ "function": { "name": "x" } });
        let rows = [
            (json!(["x"]), NOT_AN_OBJECT),
            (json!([{ "function": "x" }]), NOT_AN_OBJECT),
            (json!(vec![call; CALLS_MAX + 1]), "more than 4096 calls"),
        ];
        for (calls, want) in rows {
            let mut piece = json!({ "message": { "tool_calls": calls } });
            assert_eq!(OllamaAnswer::default().apply_piece(&mut piece), Err(want.into()));
        }
    }
}
