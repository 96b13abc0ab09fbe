//! Converts a finished answer into a [`ModelReply`].
//!
//! Its items are kept and sent back with the next request. Only the ids and arguments of calls are
//! repaired in them, because they would make the next request fail.

use serde_json::{Value, json};

use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelError, ModelReply,
        OpaqueMessage, ReplyDelta, TokenUsage,
    },
    wire::{
        ProviderIdentity,
        answer::{other_finish_reason, text_field, token_count},
        conversation::arguments_text,
        unique_ids,
    },
};

/// Most calls in one answer. No session runs more.
const CALLS_MAX: usize = 4096;

/// An answer that violates the protocol.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResponsesReplyError {
    /// The answer has no items.
    #[error("there is no output in the answer")]
    NoOutput,
    /// An item is not a JSON object.
    #[error("an item of the answer is not an object")]
    NotAnObject,
    /// The answer is neither completed nor incomplete.
    #[error("the answer is not complete: it is {status}")]
    Unfinished {
        /// The status of the answer.
        status: String,
    },
    /// There are more than [`CALLS_MAX`] calls.
    #[error("more than {CALLS_MAX} calls")]
    TooManyCalls,
}

impl ResponsesReplyError {
    /// Returns it as an error of the provider.
    pub(super) fn to_model_error(&self, provider: &ProviderIdentity) -> ModelError {
        provider.protocol_error(&self.to_string())
    }
}

/// Converts a finished answer. `conversation` contains the call ids that are already used; `origin`
/// marks the provider's own form.
pub(super) fn build_reply(
    mut answer: Value,
    conversation: &[ChatMessage],
    origin: &str,
) -> Result<ModelReply, ResponsesReplyError> {
    let text = answer_text(&answer);
    let usage = read_usage(&answer);
    let Some(Value::Array(mut items)) = answer.get_mut("output").map(Value::take) else {
        return Err(ResponsesReplyError::NoOutput);
    };
    let calls = read_calls(&mut items, conversation)?;
    let finish = finish_reason(&answer, !calls.is_empty())?;
    let opaque = OpaqueMessage { origin: origin.to_owned(), body: Value::Array(items) };
    let message = AssistantMessage { text, calls, opaque: Some(opaque) };
    Ok(ModelReply { message, finish, usage })
}

/// Returns the deltas of a whole answer, in the order of a stream.
pub(super) fn answer_deltas(answer: &Value) -> Vec<ReplyDelta> {
    let thoughts = join_pieces(items_of_type(answer, "reasoning").map(|item| {
        join_pieces(
            ["summary", "content"].iter().flat_map(|key| array_items(item, key)).map(part_text),
        )
    }));
    let thoughts =
        Some(thoughts).filter(|text_value| !text_value.is_empty()).map(ReplyDelta::Reasoning);
    let text =
        Some(answer_text(answer)).filter(|text_value| !text_value.is_empty()).map(ReplyDelta::Text);
    let calls = items_of_type(answer, "function_call").flat_map(call_begun_deltas);
    thoughts.into_iter().chain(text).chain(calls).collect()
}

/// Returns the delta that an item begins with, if it is a call.
pub(super) fn call_begun_deltas(item: &Value) -> impl Iterator<Item = ReplyDelta> + use<> {
    let name =
        (text_field(item, "type") == "function_call").then(|| text_field(item, "name").to_owned());
    name.filter(|name| !name.is_empty()).map(|name| ReplyDelta::CallBegun { name }).into_iter()
}

/// Returns the text of an answer. A refusal counts as text.
pub(super) fn answer_text(answer: &Value) -> String {
    join_pieces(
        items_of_type(answer, "message")
            .map(|item| array_items(item, "content").map(part_text).collect()),
    )
}

fn items_of_type<'a>(answer: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    array_items(answer, "output").filter(move |item| text_field(item, "type") == kind)
}

fn array_items<'a>(item: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    item.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn part_text(part: &Value) -> String {
    match text_field(part, "type") {
        "output_text" | "summary_text" | "reasoning_text" => text_field(part, "text").to_owned(),
        "refusal" => text_field(part, "refusal").to_owned(),
        _ => String::new(),
    }
}

fn join_pieces(pieces: impl Iterator<Item = String>) -> String {
    pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn read_calls(
    items: &mut [Value],
    conversation: &[ChatMessage],
) -> Result<Vec<ModelCallRequest>, ResponsesReplyError> {
    if items.iter().any(|item| !item.is_object()) {
        return Err(ResponsesReplyError::NotAnObject);
    }
    let calls = items.iter_mut().filter(|item| text_field(item, "type") == "function_call");
    let calls: Vec<&mut Value> = calls.collect();
    if calls.len() > CALLS_MAX {
        return Err(ResponsesReplyError::TooManyCalls);
    }
    let given: Vec<Option<&str>> =
        calls.iter().map(|call| Some(text_field(call, "call_id"))).collect();
    let ids = unique_ids(&given, conversation);
    Ok(calls.into_iter().zip(ids).map(|(call, id)| read_call(call, id)).collect())
}

/// Converts one call, and writes the values that were missing into the provider's form too.
fn read_call(call: &mut Value, id: String) -> ModelCallRequest {
    let arguments = arguments_text(call.get("arguments"));
    call["call_id"] = json!(id);
    call["arguments"] = json!(arguments);
    ModelCallRequest { id, name: text_field(call, "name").to_owned(), arguments }
}

fn read_usage(answer: &Value) -> Option<TokenUsage> {
    let usage = answer.get("usage").filter(|usage| usage.is_object())?;
    Some(TokenUsage {
        input_tokens: token_count(usage, "/input_tokens"),
        output_tokens: token_count(usage, "/output_tokens"),
        cached_input_tokens: token_count(usage, "/input_tokens_details/cached_tokens"),
        cache_write_tokens: token_count(usage, "/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: token_count(usage, "/output_tokens_details/reasoning_tokens"),
    })
}

fn finish_reason(answer: &Value, has_calls: bool) -> Result<FinishReason, ResponsesReplyError> {
    let why = answer.pointer("/incomplete_details/reason").and_then(Value::as_str);
    match (text_field(answer, "status"), why) {
        ("incomplete", Some("max_output_tokens")) => Ok(FinishReason::Length),
        ("incomplete", Some("content_filter")) => Ok(FinishReason::ContentFilter),
        ("incomplete", why) => Ok(other_finish_reason(why.unwrap_or("incomplete"))),
        ("completed" | "", _) if has_calls => Ok(FinishReason::ToolCalls),
        ("completed" | "", _) => Ok(FinishReason::Stop),
        (status, _) => Err(ResponsesReplyError::Unfinished {
            status: sallyport_contract::text::escape_excerpt(status, 40),
        }),
    }
}
