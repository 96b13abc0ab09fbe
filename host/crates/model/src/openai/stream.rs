//! Reads a streamed answer: server-sent events, each a fragment of one message.

use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sse_stream::Sse;

use super::calls::StreamedCallList;
use super::merge::merge_fragment;
use super::reply::{self, CompletionAnswer};
use crate::{
    chat::{ChatMessage, ModelError, ModelReply, ReplyDelta},
    wire::{Events, ProviderIdentity, json},
};

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// An answer that violates the protocol.
enum CompletionStreamError {
    /// The server reports an error of its own.
    Error(Value),
    /// The stream is malformed.
    Malformed(String),
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

/// The part of the answer that has arrived.
#[derive(Default)]
struct PartialCompletion {
    finished: CompletionAnswer,
    calls: StreamedCallList,
}

/// Reads a streamed answer to its end.
pub(super) async fn read_stream(
    mut events: Events<'_>,
    provider: &ProviderIdentity,
    conversation: &[ChatMessage],
    origin: &str,
    on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
) -> Result<ModelReply, ModelError> {
    let mut partial = PartialCompletion::default();
    let mut is_complete = false;
    while !is_complete && let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                is_complete = partial
                    .apply_event(event, on_delta)
                    .map_err(|f| f.into_model_error(provider))?
            }
            // The answer is complete; only the closing event is missing.
            Err(_) if partial.finished.finish.is_some() => break,
            Err(error) => return Err(error),
        }
    }
    if !is_complete && partial.finished.finish.is_none() {
        return Err(provider.protocol_error("the stream ended before the answer did"));
    }
    reply::build_reply(partial.into_answer(), conversation, origin)
        .map_err(|e| provider.protocol_error(&e.to_string()))
}

impl PartialCompletion {
    /// Reads one event; true if it was the last.
    fn apply_event(
        &mut self,
        event: Sse,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<bool, CompletionStreamError> {
        let data = event.data.unwrap_or_default();
        let data = data.trim();
        match data {
            "" => return Ok(false),
            DONE => return Ok(true),
            _ => {}
        }
        let CompletionChunk { mut choices, usage, error } = parse_chunk(data)?;
        if !error.is_null() {
            return Err(CompletionStreamError::Error(error));
        }
        if event.event.as_deref() == Some("error") {
            return Err(CompletionStreamError::Error(parse_json(data)?));
        }
        self.finished.usage = reply::read_usage(&usage).or(self.finished.usage);
        match first_choice(&mut choices) {
            Some(choice) => self.apply_choice(choice, on_delta).map(|()| false),
            None => Ok(false),
        }
    }

    fn apply_choice(
        &mut self,
        choice: &mut Value,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<(), CompletionStreamError> {
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finished.finish = Some(reason.to_owned());
        }
        let Some(Value::Object(mut delta)) = choice.get_mut("delta").map(Value::take) else {
            return Ok(());
        };
        reply::message_deltas(&delta).for_each(&mut *on_delta);
        if let Some(Value::Array(fragments)) = delta.remove("tool_calls") {
            for fragment in fragments {
                let begun = self.calls.add_fragment(fragment);
                if let Some(name) =
                    begun.map_err(|e| CompletionStreamError::Malformed(e.to_string()))?
                {
                    on_delta(ReplyDelta::CallBegun { name });
                }
            }
        }
        align_content_parts(&mut self.finished.message, &mut delta);
        merge_fragment(&mut self.finished.message, delta);
        Ok(())
    }

    /// Returns the message in the form of a whole answer.
    fn into_answer(self) -> CompletionAnswer {
        let Self { mut finished, calls } = self;
        let calls = calls.into_values();
        let nothing = if calls.is_empty() { json!("") } else { Value::Null };
        finished.message.entry("content").or_insert(nothing);
        if !calls.is_empty() {
            finished.message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        finished
    }
}

impl CompletionStreamError {
    fn into_model_error(self, provider: &ProviderIdentity) -> ModelError {
        match self {
            Self::Error(error) => provider.answer_error(200, &error),
            Self::Malformed(message) => provider.protocol_error(&message),
        }
    }
}

fn parse_chunk(data: &str) -> Result<CompletionChunk, CompletionStreamError> {
    // Serde would read a list too, as the values of the fields.
    if !data.starts_with('{') {
        parse_json::<Value>(data)?;
        return Err(CompletionStreamError::Malformed("an event is not an object".to_owned()));
    }
    parse_json(data)
}

fn parse_json<T: for<'de> Deserialize<'de>>(data: &str) -> Result<T, CompletionStreamError> {
    json::parse_text(data)
        .map_err(|e| CompletionStreamError::Malformed(format!("an event is not JSON: {e}")))
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
