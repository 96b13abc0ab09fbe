//! Reads an answer and converts it into a [`ModelReply`].
//!
//! A stream consists of named events, of which the last contains the whole answer. Deltas are passed
//! on while they arrive. The reply is read from the last event because only there the model's
//! thoughts are encrypted in the form in which they must be sent back.
//!
//! Its items are kept and sent back with the next request. Only the ids and arguments of calls are
//! repaired in them, because they would make the next request fail.

use std::collections::BTreeMap;

use sallyport_contract::text::escape_excerpt;
use serde_json::{Value, json};

use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelReply, OpaqueMessage,
        ReplyDelta, TokenUsage,
    },
    fit::conversation::arguments_text,
    wire::{
        AnswerError, OnDelta, PartialAnswer,
        answer::{event_value, other_finish_reason, text_field, token_count},
        unique_ids,
    },
};

/// Most calls in one answer. No session runs more.
const CALLS_MAX: usize = 4096;

/// Separates two pieces of different items.
const SEPARATOR: &str = "\n\n";

/// An answer of the provider, as far as it has arrived.
#[derive(Default)]
pub(super) struct ResponsesAnswer {
    /// The whole answer, from the last event.
    answer: Value,
    /// Finished items by their index, for servers that omit them from the last event.
    items: BTreeMap<u64, Value>,
    /// The item of the last text delta.
    last_text_item: Option<Value>,
    /// The part of the item of the last thinking delta.
    last_thinking_part: Option<Value>,
}

impl PartialAnswer for ResponsesAnswer {
    /// The type of an event is a field of its data, or its name.
    fn apply_event(
        &mut self,
        name: &str,
        data: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<bool, AnswerError> {
        let mut event = event_value(data)?;
        let kind = event.get("type").map_or(name, |kind| kind.as_str().unwrap_or_default());
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.pass_text(&event, on_delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.pass_thinking(&event, on_delta);
            }
            "response.output_item.added" => call_begun_deltas(&event["item"]).for_each(on_delta),
            "response.output_item.done" => {
                let place = event["output_index"].as_u64().unwrap_or(u64::MAX);
                self.items.insert(place, event["item"].take());
            }
            "response.completed" | "response.incomplete" => {
                self.complete_answer(event["response"].take(), on_delta);
                return Ok(true);
            }
            "response.failed" => return Err(reported_error(&event["response"])),
            "error" => return Err(reported_error(&event)),
            _ => {}
        }
        Ok(false)
    }

    fn apply_whole(&mut self, answer: Value, on_delta: OnDelta<'_>) -> Result<(), AnswerError> {
        answer_deltas(&answer).into_iter().for_each(on_delta);
        self.answer = answer;
        Ok(())
    }

    fn into_reply(
        self: Box<Self>,
        conversation: &[ChatMessage],
        origin: String,
    ) -> Result<ModelReply, AnswerError> {
        let mut answer = self.answer;
        let text = answer_text(&answer);
        let usage = read_usage(&answer);
        let Some(Value::Array(mut items)) = answer.get_mut("output").map(Value::take) else {
            return Err("there is no output in the answer".into());
        };
        let calls = read_calls(&mut items, conversation)?;
        let finish = finish_reason(&answer, !calls.is_empty())?;
        let opaque = OpaqueMessage { origin, body: Value::Array(items) };
        let message = AssistantMessage { text, calls, opaque: Some(opaque) };
        Ok(ModelReply { message, finish, usage })
    }
}

impl ResponsesAnswer {
    fn pass_text(&mut self, event: &Value, on_delta: OnDelta<'_>) {
        let piece = text_field(event, "delta");
        if piece.is_empty() {
            return;
        }
        if has_changed(&mut self.last_text_item, event["output_index"].clone()) {
            on_delta(ReplyDelta::Text { text: SEPARATOR.to_owned() });
        }
        on_delta(ReplyDelta::Text { text: piece.to_owned() });
    }

    fn pass_thinking(&mut self, event: &Value, on_delta: OnDelta<'_>) {
        let piece = text_field(event, "delta");
        if piece.is_empty() {
            return;
        }
        let part = json!([event["output_index"], event["summary_index"], event["content_index"]]);
        if has_changed(&mut self.last_thinking_part, part) {
            on_delta(ReplyDelta::Reasoning { text: SEPARATOR.to_owned() });
        }
        on_delta(ReplyDelta::Reasoning { text: piece.to_owned() });
    }

    /// Adds missing items to the answer, and passes on its text if no text delta arrived.
    fn complete_answer(&mut self, mut answer: Value, on_delta: OnDelta<'_>) {
        let is_empty = |output: &Value| output.as_array().is_none_or(Vec::is_empty);
        if answer.is_object() && is_empty(&answer["output"]) && !self.items.is_empty() {
            answer["output"] = std::mem::take(&mut self.items).into_values().collect();
        }
        let words = answer_text(&answer);
        if self.last_text_item.is_none() && !words.is_empty() {
            on_delta(ReplyDelta::Text { text: words });
        }
        self.answer = answer;
    }
}

/// Returns true if the last value exists and differs.
fn has_changed(last: &mut Option<Value>, now: Value) -> bool {
    let is_another = last.as_ref().is_some_and(|last| *last != now);
    *last = Some(now);
    is_another
}

fn reported_error(event: &Value) -> AnswerError {
    let error = event.get("error").filter(|error| !error.is_null()).unwrap_or(event);
    AnswerError::Reported(error.clone())
}

/// Returns the deltas of a whole answer, in the order of a stream.
fn answer_deltas(answer: &Value) -> Vec<ReplyDelta> {
    let thoughts = join_pieces(items_of_type(answer, "reasoning").map(|item| {
        join_pieces(
            ["summary", "content"].iter().flat_map(|key| array_items(item, key)).map(part_text),
        )
    }));
    let thoughts =
        Some(thoughts).filter(|text_value| !text_value.is_empty()).map(ReplyDelta::reasoning);
    let text =
        Some(answer_text(answer)).filter(|text_value| !text_value.is_empty()).map(ReplyDelta::text);
    let calls = items_of_type(answer, "function_call").flat_map(call_begun_deltas);
    thoughts.into_iter().chain(text).chain(calls).collect()
}

/// Returns the delta that an item begins with, if it is a call.
fn call_begun_deltas(item: &Value) -> impl Iterator<Item = ReplyDelta> + use<> {
    let name =
        (text_field(item, "type") == "function_call").then(|| text_field(item, "name").to_owned());
    name.filter(|name| !name.is_empty()).map(|name| ReplyDelta::CallBegun { name }).into_iter()
}

/// Returns the text of an answer. A refusal counts as text.
fn answer_text(answer: &Value) -> String {
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
) -> Result<Vec<ModelCallRequest>, AnswerError> {
    if items.iter().any(|item| !item.is_object()) {
        return Err("an item of the answer is not an object".into());
    }
    let calls = items.iter_mut().filter(|item| text_field(item, "type") == "function_call");
    let calls: Vec<&mut Value> = calls.collect();
    if calls.len() > CALLS_MAX {
        return Err(format!("more than {CALLS_MAX} calls").into());
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

fn finish_reason(answer: &Value, has_calls: bool) -> Result<FinishReason, AnswerError> {
    let why = answer.pointer("/incomplete_details/reason").and_then(Value::as_str);
    match (text_field(answer, "status"), why) {
        ("incomplete", Some("max_output_tokens")) => Ok(FinishReason::Length),
        ("incomplete", Some("content_filter")) => Ok(FinishReason::ContentFilter),
        ("incomplete", why) => Ok(other_finish_reason(why.unwrap_or("incomplete"))),
        ("completed" | "", _) if has_calls => Ok(FinishReason::ToolCalls),
        ("completed" | "", _) => Ok(FinishReason::Stop),
        (status, _) => {
            Err(format!("the answer is not complete: it is {}", escape_excerpt(status, 40)).into())
        }
    }
}
