//! Reads a streamed answer: named events that begin blocks, extend them and give the stop reason.

use futures::StreamExt;
use serde_json::Value;

use super::blocks::BlockError;
use super::reply::Finished;
use crate::{
    chat::{Delta, ModelError},
    wire::{
        Events, Provider,
        answer::{object, text},
    },
};

/// Why an event cannot be used.
enum Flaw {
    /// The server reports an error of its own.
    Error(Value),
    /// The stream is malformed.
    Malformed(BlockError),
}

/// Reads a streamed answer to its end.
pub(super) async fn read(
    mut events: Events<'_>,
    provider: &Provider,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Finished, ModelError> {
    let mut finished = Finished::default();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => object(event, provider)?,
            // The answer is complete; only the closing event is missing.
            Err(_) if finished.stop_reason.is_some() => break,
            Err(error) => return Err(error),
        };
        let Some(mut event) = event else { continue };
        if text(&event, "type") == "message_stop" {
            return Ok(finished);
        }
        let said = take(&mut finished, &mut event).map_err(|flaw| flaw.of(provider))?;
        said.into_iter().for_each(&mut *on_delta);
    }
    match finished.stop_reason {
        Some(_) => Ok(finished),
        None => Err(provider.broken("the stream ended before the answer did")),
    }
}

/// Applies one event and returns its delta, if any. Unknown events are ignored.
fn take(finished: &mut Finished, event: &mut Value) -> Result<Option<Delta>, Flaw> {
    let index = event.get("index").and_then(Value::as_u64);
    match text(event, "type") {
        "message_start" => {
            finished.hear(&event["message"]);
            Ok(None)
        }
        "content_block_start" => {
            let block = event["content_block"].take();
            finished.blocks.begin(index, block).map_err(Flaw::Malformed)
        }
        "content_block_delta" => {
            finished.blocks.grow(index, &mut event["delta"]).map_err(Flaw::Malformed)
        }
        "message_delta" => {
            finished.hear(&event["delta"]);
            finished.hear(event);
            Ok(None)
        }
        "error" => Err(Flaw::Error(event.get("error").unwrap_or(event).clone())),
        _ => Ok(None),
    }
}

impl Flaw {
    fn of(self, provider: &Provider) -> ModelError {
        match self {
            Self::Error(error) => provider.refusal_inside(200, &error),
            Self::Malformed(error) => provider.broken(&error.to_string()),
        }
    }
}
