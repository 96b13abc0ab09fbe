//! Reads a streamed answer: server-sent events, each a fragment of one message.

use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sse_stream::Sse;

use super::calls::Calls;
use super::merge::merge;
use super::reply::{self, Finished};
use crate::{
    chat::{Delta, Message, ModelError, Reply},
    wire::{Events, Provider, json},
};

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// An answer that violates the protocol.
enum Flaw {
    /// The server reports an error of its own.
    Error(Value),
    /// The stream is malformed.
    Malformed(String),
}

/// The fields of an event that are read. The others, most of its bytes, are the same in every event
/// and are skipped.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Value,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

/// The part of the answer that has arrived.
#[derive(Default)]
struct Partial {
    finished: Finished,
    calls: Calls,
}

/// Reads a streamed answer to its end.
pub(super) async fn read(
    mut events: Events<'_>,
    provider: &Provider,
    conversation: &[Message],
    origin: &str,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Reply, ModelError> {
    let mut partial = Partial::default();
    let mut is_complete = false;
    while !is_complete && let Some(event) = events.next().await {
        match event {
            Ok(event) => is_complete = partial.take(event, on_delta).map_err(|f| f.of(provider))?,
            // The answer is complete; only the closing event is missing.
            Err(_) if partial.finished.finish.is_some() => break,
            Err(error) => return Err(error),
        }
    }
    if !is_complete && partial.finished.finish.is_none() {
        return Err(provider.broken("the stream ended before the answer did"));
    }
    reply::reply(partial.whole(), conversation, origin).map_err(|e| provider.broken(&e.to_string()))
}

impl Partial {
    /// Reads one event; true if it was the last.
    fn take(&mut self, event: Sse, on_delta: &mut (dyn FnMut(Delta) + Send)) -> Result<bool, Flaw> {
        let data = event.data.unwrap_or_default();
        let data = data.trim();
        match data {
            "" => return Ok(false),
            DONE => return Ok(true),
            _ => {}
        }
        let Chunk { mut choices, usage, error } = chunk(data)?;
        if !error.is_null() {
            return Err(Flaw::Error(error));
        }
        if event.event.as_deref() == Some("error") {
            return Err(Flaw::Error(json_of(data)?));
        }
        self.finished.usage = reply::told_usage(&usage).or(self.finished.usage);
        match first_choice(&mut choices) {
            Some(choice) => self.take_choice(choice, on_delta).map(|()| false),
            None => Ok(false),
        }
    }

    fn take_choice(
        &mut self,
        choice: &mut Value,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), Flaw> {
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finished.finish = Some(reason.to_owned());
        }
        let Some(Value::Object(mut delta)) = choice.get_mut("delta").map(Value::take) else {
            return Ok(());
        };
        reply::deltas(&delta).for_each(&mut *on_delta);
        if let Some(Value::Array(fragments)) = delta.remove("tool_calls") {
            for fragment in fragments {
                let begun = self.calls.take(fragment);
                if let Some(name) = begun.map_err(|e| Flaw::Malformed(e.to_string()))? {
                    on_delta(Delta::CallBegun { name });
                }
            }
        }
        as_parts(&mut self.finished.message, &mut delta);
        merge(&mut self.finished.message, delta);
        Ok(())
    }

    /// Returns the message in the form of a whole answer.
    fn whole(self) -> Finished {
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

impl Flaw {
    fn of(self, provider: &Provider) -> ModelError {
        match self {
            Self::Error(error) => provider.refusal_inside(200, &error),
            Self::Malformed(message) => provider.broken(&message),
        }
    }
}

fn chunk(data: &str) -> Result<Chunk, Flaw> {
    // Serde would read a list too, as the values of the fields.
    if !data.starts_with('{') {
        json_of::<Value>(data)?;
        return Err(Flaw::Malformed("an event is not an object".to_owned()));
    }
    json_of(data)
}

fn json_of<T: for<'de> Deserialize<'de>>(data: &str) -> Result<T, Flaw> {
    json::read(data).map_err(|e| Flaw::Malformed(format!("an event is not JSON: {e}")))
}

/// Requests ask for one choice, so any others are ignored.
fn first_choice(choices: &mut Value) -> Option<&mut Value> {
    let choices = choices.as_array_mut()?;
    choices.iter_mut().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// Content may change from parts to plain text within an answer. Both are then converted to parts.
fn as_parts(message: &mut Map<String, Value>, delta: &mut Map<String, Value>) {
    let (Some(old), Some(new)) = (message.get_mut("content"), delta.get_mut("content")) else {
        return;
    };
    if old.is_array() != new.is_array() {
        [old, new].into_iter().for_each(as_part);
    }
}

fn as_part(content: &mut Value) {
    if let Value::String(words) = content {
        *content = json!([{ "type": "text", "text": words }]);
    }
}
