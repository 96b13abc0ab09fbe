//! Reads a streamed answer: named events, of which the last contains the whole answer.
//!
//! Deltas are passed on while they arrive. The reply is read from the last event because only there
//! the model's thoughts are encrypted in the form in which they must be sent back.

use std::collections::BTreeMap;

use futures::StreamExt;
use serde_json::{Value, json};
use sse_stream::Sse;

use super::reply;
use crate::{
    chat::{ModelError, ReplyDelta},
    wire::{Events, ProviderIdentity, answer::text_field, json},
};

/// Separates two pieces of different items.
const SEPARATOR: &str = "\n\n";

/// The state of a streamed answer.
#[derive(Default)]
struct ResponsesStreamState {
    /// Finished items by their index, for servers that omit them from the last event.
    items: BTreeMap<u64, Value>,
    /// The item of the last text delta.
    last_text_item: Option<Value>,
    /// The part of the item of the last thinking delta.
    last_thinking_part: Option<Value>,
}

/// Reads a streamed answer to its end and returns the whole answer.
pub(super) async fn read_stream(
    mut events: Events<'_>,
    provider: &ProviderIdentity,
    on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
) -> Result<Value, ModelError> {
    let mut state = ResponsesStreamState::default();
    while let Some(event) = events.next().await {
        let Some(event) = parse_event(event?, provider)? else { continue };
        if let Some(answer) = state.apply_event(event, provider, on_delta)? {
            return Ok(state.complete_answer(answer, on_delta));
        }
    }
    Err(provider.protocol_error("the stream ended before the answer did"))
}

/// Parses an event; `None` if it has no data. The type is a field of the data, or the name of the
/// event.
fn parse_event(event: Sse, provider: &ProviderIdentity) -> Result<Option<Value>, ModelError> {
    let data = event.data.unwrap_or_default();
    if matches!(data.trim(), "" | "[DONE]") {
        return Ok(None);
    }
    let mut parsed: Value = json::parse_text(&data)
        .map_err(|e| provider.protocol_error(&format!("an event is not JSON: {e}")))?;
    let Some(fields) = parsed.as_object_mut() else {
        return Err(provider.protocol_error("an event is not an object"));
    };
    let kind = event.event.unwrap_or_default();
    fields.entry("type").or_insert_with(|| json!(kind));
    Ok(Some(parsed))
}

impl ResponsesStreamState {
    /// Reads one event; returns the answer if it was the last.
    fn apply_event(
        &mut self,
        mut event: Value,
        provider: &ProviderIdentity,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<Option<Value>, ModelError> {
        match text_field(&event, "type") {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.pass_text(&event, on_delta)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.pass_thinking(&event, on_delta);
            }
            "response.output_item.added" => {
                reply::call_begun_deltas(&event["item"]).for_each(on_delta)
            }
            "response.output_item.done" => {
                let place = event["output_index"].as_u64().unwrap_or(u64::MAX);
                self.items.insert(place, event["item"].take());
            }
            "response.completed" | "response.incomplete" => {
                return Ok(Some(event["response"].take()));
            }
            "response.failed" => return Err(convert_failure(&event["response"], provider)),
            "error" => return Err(convert_failure(&event, provider)),
            _ => {}
        }
        Ok(None)
    }

    fn pass_text(&mut self, event: &Value, on_delta: &mut (dyn FnMut(ReplyDelta) + Send)) {
        let piece = text_field(event, "delta");
        if piece.is_empty() {
            return;
        }
        if has_changed(&mut self.last_text_item, event["output_index"].clone()) {
            on_delta(ReplyDelta::Text(SEPARATOR.to_owned()));
        }
        on_delta(ReplyDelta::Text(piece.to_owned()));
    }

    fn pass_thinking(&mut self, event: &Value, on_delta: &mut (dyn FnMut(ReplyDelta) + Send)) {
        let piece = text_field(event, "delta");
        if piece.is_empty() {
            return;
        }
        let part = json!([event["output_index"], event["summary_index"], event["content_index"]]);
        if has_changed(&mut self.last_thinking_part, part) {
            on_delta(ReplyDelta::Reasoning(SEPARATOR.to_owned()));
        }
        on_delta(ReplyDelta::Reasoning(piece.to_owned()));
    }

    /// Adds missing items to the answer, and passes on its text if no text delta arrived.
    fn complete_answer(
        self,
        mut answer: Value,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Value {
        let is_empty = |output: &Value| output.as_array().is_none_or(Vec::is_empty);
        if answer.is_object() && is_empty(&answer["output"]) && !self.items.is_empty() {
            answer["output"] = self.items.into_values().collect();
        }
        let words = reply::answer_text(&answer);
        if self.last_text_item.is_none() && !words.is_empty() {
            on_delta(ReplyDelta::Text(words));
        }
        answer
    }
}

/// Returns true if the last value exists and differs.
fn has_changed(last: &mut Option<Value>, now: Value) -> bool {
    let is_another = last.as_ref().is_some_and(|last| *last != now);
    *last = Some(now);
    is_another
}

fn convert_failure(event_value: &Value, provider: &ProviderIdentity) -> ModelError {
    let error = event_value.get("error").filter(|error| !error.is_null()).unwrap_or(event_value);
    provider.answer_error(200, error)
}
