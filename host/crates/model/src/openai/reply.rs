//! Converts a provider's finished message into a [`ModelReply`].
//!
//! Whole and streamed answers both end here: a whole answer brings its message, a streamed one has
//! been assembled in the same form. That form is kept and sent back with the next request, unless
//! text and calls are all that it contains. Only ids and empty arguments are repaired in it: they
//! would make the next request fail.

use serde_json::{Map, Value, json};

use super::calls::CallFragmentError;
use super::request::{NO_ARGUMENTS, assistant_message};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelReply, OpaqueMessage,
        ReplyDelta, TokenUsage,
    },
    wire::{
        answer::{other_finish_reason, text_field, token_count},
        unique_ids,
    },
};

/// A message in the provider's own form, with its finish reason and usage.
#[derive(Debug, Default)]
pub(super) struct CompletionAnswer {
    pub(super) message: Map<String, Value>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<TokenUsage>,
}

impl CompletionAnswer {
    /// Extracts the message of a whole answer; `None` if it has none.
    pub(super) fn from_answer(mut answer: Value) -> Option<Self> {
        let usage = read_usage(&answer["usage"]);
        let finish = answer.pointer("/choices/0/finish_reason").and_then(Value::as_str);
        let finish = finish.map(str::to_owned);
        match answer.pointer_mut("/choices/0/message").map(Value::take) {
            Some(Value::Object(message)) => Some(Self { message, finish, usage }),
            _ => None,
        }
    }
}

/// Converts a finished message. `conversation` contains the call ids that are already used;
/// `origin` marks the provider's own form.
pub(super) fn build_reply(
    finished: CompletionAnswer,
    conversation: &[ChatMessage],
    origin: &str,
) -> Result<ModelReply, CallFragmentError> {
    let CompletionAnswer { message: mut own_form, finish, usage } = finished;
    let calls = match own_form.get_mut("tool_calls") {
        Some(Value::Array(calls)) => read_calls(calls, conversation)?,
        _ => Vec::new(),
    };
    own_form.insert("role".to_owned(), json!("assistant"));
    let text = message_text(&own_form);
    let finish = finish_reason(finish.as_deref(), !calls.is_empty());
    let mut message = AssistantMessage { text, calls, opaque: None };
    let body = Value::Object(own_form);
    // Most answers contain nothing besides text and calls. Their provider's form can be rebuilt,
    // so it is not kept: parsed, it takes several times the memory of the answer.
    if body != assistant_message(&message) {
        message.opaque = Some(OpaqueMessage { origin: origin.to_owned(), body });
    }
    Ok(ModelReply { message, finish, usage })
}

/// Returns the deltas of a message or of a fragment: thinking, then text.
pub(super) fn message_deltas(message: &Map<String, Value>) -> impl Iterator<Item = ReplyDelta> {
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| message.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty()))
        .map(|text| ReplyDelta::Reasoning(text.to_owned()));
    let text = Some(message_text(message)).filter(|text| !text.is_empty()).map(ReplyDelta::Text);
    reasoning.into_iter().chain(text)
}

/// Reads the `usage` of an answer; `None` if it is not an object.
pub(super) fn read_usage(usage: &Value) -> Option<TokenUsage> {
    usage.as_object()?;
    // DeepSeek has its own field for cache hits, in addition to the usual one or alone.
    let cached = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"];
    Some(TokenUsage {
        input_tokens: token_count(usage, "/prompt_tokens"),
        output_tokens: token_count(usage, "/completion_tokens"),
        cached_input_tokens: cached
            .map(|path| token_count(usage, path))
            .into_iter()
            .fold(0, u64::max),
        cache_write_tokens: token_count(usage, "/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: token_count(usage, "/completion_tokens_details/reasoning_tokens"),
    })
}

/// Returns the content, which is text or a list of parts. A refusal is used if there is no content.
fn message_text(message: &Map<String, Value>) -> String {
    let part = |part: &Value| match part.get("type").and_then(Value::as_str) {
        Some("text") => part.get("text").and_then(Value::as_str).unwrap_or("").to_owned(),
        _ => String::new(),
    };
    let content = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        _ => String::new(),
    };
    match message.get("refusal") {
        Some(Value::String(refusal)) if content.is_empty() => refusal.clone(),
        _ => content,
    }
}

fn read_calls(
    calls: &mut [Value],
    conversation: &[ChatMessage],
) -> Result<Vec<ModelCallRequest>, CallFragmentError> {
    let given: Vec<Option<&str>> = calls.iter().map(|call| Some(text_field(call, "id"))).collect();
    let ids = unique_ids(&given, conversation);
    calls.iter_mut().zip(ids).map(|(call, id)| read_call(call, id)).collect()
}

/// Converts one call, and writes the values that were missing into the provider's form too.
fn read_call(call: &mut Value, id: String) -> Result<ModelCallRequest, CallFragmentError> {
    let call = call.as_object_mut().ok_or(CallFragmentError::NotAnObject)?;
    call.insert("id".to_owned(), json!(id));
    let function = call.entry("function").or_insert_with(|| json!({}));
    let function = function.as_object_mut().ok_or(CallFragmentError::NotAnObject)?;
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => {
            function.insert("arguments".to_owned(), json!(NO_ARGUMENTS));
            NO_ARGUMENTS.to_owned()
        }
    };
    Ok(ModelCallRequest { id, name, arguments })
}

/// Some servers send `stop` even if the model requests tool calls.
fn finish_reason(finish: Option<&str>, has_calls: bool) -> FinishReason {
    match finish {
        None | Some("stop" | "tool_calls" | "function_call") if has_calls => {
            FinishReason::ToolCalls
        }
        None | Some("stop") => FinishReason::Stop,
        Some("tool_calls" | "function_call") => FinishReason::ToolCalls,
        Some("length") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some(other) => other_finish_reason(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: Value) -> Result<ModelReply, CallFragmentError> {
        let message = message.as_object().unwrap().clone();
        build_reply(CompletionAnswer { message, ..CompletionAnswer::default() }, &[], "openai/m")
    }

    #[test]
    fn ids_are_unique_and_the_form_agrees() {
        let call = |id: Value| json!({ "id": id, "function": { "name": "n" } });
        let rows: [(&[Value], &[&str]); 3] = [
            (&[json!("a"), json!("a")], &["a", "call_1"]),
            (&[json!(""), json!(null), json!(3)], &["call_1", "call_2", "call_3"]),
            (&[json!(""), json!("call_1")], &["call_2", "call_1"]),
        ];
        for (given, want) in rows {
            let calls: Vec<Value> = given.iter().cloned().map(call).collect();
            let message = read(json!({ "tool_calls": calls })).unwrap().message;
            let ids: Vec<&str> = message.calls.iter().map(|c| c.id.as_str()).collect();
            assert_eq!(ids, want);
            let own = message.opaque.unwrap().body;
            for (own, want) in own["tool_calls"].as_array().unwrap().iter().zip(want) {
                assert_eq!(own["id"], json!(want));
                assert_eq!(own["function"]["arguments"], json!("{}"));
            }
        }
    }

    #[test]
    fn text_is_found_in_every_form() {
        let rows = [
            (json!({ "content": "a" }), "a"),
            (json!({ "content": null }), ""),
            (json!({}), ""),
            (json!({ "content": null, "refusal": "no" }), "no"),
            (json!({ "content": [{ "type": "thinking" }, { "type": "text", "text": "b" }] }), "b"),
        ];
        for (message, want) in rows {
            assert_eq!(read(message).unwrap().message.text, want);
        }
    }

    #[test]
    fn calls_that_are_no_calls_break_the_answer() {
        for calls in [json!(["x"]), json!([null]), json!([{ "function": "x" }])] {
            assert!(read(json!({ "tool_calls": calls })).is_err(), "{calls}");
        }
        for calls in [json!(null), json!([]), json!("x")] {
            assert_eq!(read(json!({ "tool_calls": calls })).unwrap().message.calls, []);
        }
    }

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, FinishReason::Stop),
            (None, true, FinishReason::ToolCalls),
            (Some("stop"), true, FinishReason::ToolCalls),
            (Some("tool_calls"), true, FinishReason::ToolCalls),
            (Some("length"), true, FinishReason::Length),
            (Some("content_filter"), false, FinishReason::ContentFilter),
            (Some("er\x1bror"), false, FinishReason::Other("er\\u{1b}ror".to_owned())),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(finish_reason(given, has_calls), want);
        }
    }
}
