//! Reads an answer and converts it into a [`ModelReply`].
//!
//! A stream consists of server-sent events, each a fragment of one message. They are assembled in
//! the form of a whole answer. That form is kept and sent back with the next request, unless
//! text and calls are all that it contains. Only ids and empty arguments are repaired in it: they
//! would make the next request fail.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::calls::{NOT_AN_OBJECT, StreamedCallList};
use super::merge::merge_fragment;
use super::request::{NO_ARGUMENTS, assistant_message};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelReply, OpaqueMessage,
        ReplyDelta, TokenUsage,
    },
    wire::{
        AnswerError, OnDelta, PartialAnswer,
        answer::{DONE, event_object, other_finish_reason, text_field, token_count},
        unique_ids,
    },
};

/// A message in the provider's own form, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct CompletionAnswer {
    message: Map<String, Value>,
    finish: Option<String>,
    usage: Option<TokenUsage>,
    /// The calls of a streamed message.
    calls: Option<StreamedCallList>,
}

/// The fields of an event that are read. The others, most of its bytes, are the same in every event
/// and are skipped.
#[derive(Deserialize)]
struct CompletionChunk {
    #[serde(default)]
    choices: Value,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

impl PartialAnswer for CompletionAnswer {
    fn apply_event(
        &mut self,
        name: &str,
        data: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<bool, AnswerError> {
        self.calls.get_or_insert_default();
        if data == DONE {
            return Ok(true);
        }
        let CompletionChunk { mut choices, usage, error } = event_object(data)?;
        if !error.is_null() {
            return Err(AnswerError::Reported(error));
        }
        if name == "error" {
            return Err(AnswerError::Reported(event_object(data)?));
        }
        self.usage = read_usage(&usage).or(self.usage);
        if let Some(choice) = first_choice(&mut choices) {
            self.apply_choice(choice, on_delta)?;
        }
        Ok(false)
    }

    fn apply_whole(&mut self, mut answer: Value, on_delta: OnDelta<'_>) -> Result<(), AnswerError> {
        self.usage = read_usage(&answer["usage"]);
        self.finish = answer.pointer("/choices/0/finish_reason").and_then(read_finish);
        let message = answer.pointer_mut("/choices/0/message").map(Value::take);
        let Some(Value::Object(message)) = message else {
            return Err("there is no message in the answer".into());
        };
        message_deltas(&message).for_each(&mut *on_delta);
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let name = call.pointer("/function/name").and_then(Value::as_str);
            on_delta(ReplyDelta::CallBegun { name: name.unwrap_or_default().to_owned() });
        }
        self.message = message;
        Ok(())
    }

    fn is_complete(&self, _is_cut: bool) -> bool {
        self.finish.is_some()
    }

    fn into_reply(
        self: Box<Self>,
        conversation: &[ChatMessage],
        origin: String,
    ) -> Result<ModelReply, AnswerError> {
        let Self { message: mut own_form, finish, usage, calls } = *self;
        if let Some(calls) = calls.map(StreamedCallList::into_values) {
            let nothing = if calls.is_empty() { json!("") } else { Value::Null };
            own_form.entry("content").or_insert(nothing);
            if !calls.is_empty() {
                own_form.insert("tool_calls".to_owned(), Value::Array(calls));
            }
        }
        let calls = match own_form.get_mut("tool_calls") {
            Some(Value::Array(calls)) => read_calls(calls, conversation)?,
            _ => Vec::new(),
        };
        own_form.insert("role".to_owned(), json!("assistant"));
        let text = message_text(&own_form);
        let finish = finish_reason(finish.as_deref(), !calls.is_empty());
        let mut message = AssistantMessage { text, calls, opaque: None };
        let body = Value::Object(own_form);
        // Most answers contain nothing besides text and calls. Their provider's form can be
        // rebuilt, so it is not kept: parsed, it takes several times the memory of the answer.
        if body != assistant_message(&message) {
            message.opaque = Some(OpaqueMessage { origin, body });
        }
        Ok(ModelReply { message, finish, usage })
    }
}

/// The reason why an answer ended. Some servers have an empty text in each piece until then.
fn read_finish(reason: &Value) -> Option<String> {
    reason.as_str().filter(|reason| !reason.is_empty()).map(str::to_owned)
}

impl CompletionAnswer {
    fn apply_choice(
        &mut self,
        choice: &mut Value,
        on_delta: OnDelta<'_>,
    ) -> Result<(), AnswerError> {
        if let Some(reason) = choice.get("finish_reason").and_then(read_finish) {
            self.finish = Some(reason);
        }
        let Some(Value::Object(mut delta)) = choice.get_mut("delta").map(Value::take) else {
            return Ok(());
        };
        message_deltas(&delta).for_each(&mut *on_delta);
        if let Some(Value::Array(fragments)) = delta.remove("tool_calls") {
            for fragment in fragments {
                if let Some(name) = self.calls.get_or_insert_default().add_fragment(fragment)? {
                    on_delta(ReplyDelta::CallBegun { name });
                }
            }
        }
        align_content_parts(&mut self.message, &mut delta);
        merge_fragment(&mut self.message, delta);
        Ok(())
    }
}

/// Requests ask for one choice, so any others are ignored.
fn first_choice(choices: &mut Value) -> Option<&mut Value> {
    let choices = choices.as_array_mut()?;
    choices.iter_mut().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// Content may change from parts to plain text within an answer. Both are then converted to parts.
fn align_content_parts(message: &mut Map<String, Value>, delta: &mut Map<String, Value>) {
    let (Some(old), Some(new)) = (message.get_mut("content"), delta.get_mut("content")) else {
        return;
    };
    if old.is_array() != new.is_array() {
        [old, new].into_iter().for_each(convert_to_parts);
    }
}

fn convert_to_parts(content: &mut Value) {
    if let Value::String(words) = content {
        *content = json!([{ "type": "text", "text": words }]);
    }
}

/// Returns the deltas of a message or of a fragment: thinking, then text.
fn message_deltas(message: &Map<String, Value>) -> impl Iterator<Item = ReplyDelta> {
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| message.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty()))
        .map(|text| ReplyDelta::Reasoning { text: text.to_owned() });
    let text = Some(message_text(message)).filter(|text| !text.is_empty()).map(ReplyDelta::text);
    reasoning.into_iter().chain(text)
}

/// Reads the `usage` of an answer; `None` if it is not an object.
fn read_usage(usage: &Value) -> Option<TokenUsage> {
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
) -> Result<Vec<ModelCallRequest>, AnswerError> {
    let given: Vec<Option<&str>> = calls.iter().map(|call| Some(text_field(call, "id"))).collect();
    let ids = unique_ids(&given, conversation);
    calls.iter_mut().zip(ids).map(|(call, id)| read_call(call, id)).collect()
}

/// Converts one call, and writes the values that were missing into the provider's form too.
fn read_call(call: &mut Value, id: String) -> Result<ModelCallRequest, AnswerError> {
    let call = call.as_object_mut().ok_or(NOT_AN_OBJECT)?;
    call.insert("id".to_owned(), json!(id));
    let function = call.entry("function").or_insert_with(|| json!({}));
    let function = function.as_object_mut().ok_or(NOT_AN_OBJECT)?;
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

    fn read(message: Value) -> Result<ModelReply, AnswerError> {
        let message = message.as_object().unwrap().clone();
        let answer = CompletionAnswer { message, ..CompletionAnswer::default() };
        Box::new(answer).into_reply(&[], "openai/m".to_owned())
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
