//! Reads a streamed answer: named events that begin blocks, extend them and give the stop reason.

use futures::StreamExt;
use serde_json::Value;

use super::blocks::ContentBlockError;
use super::reply::AnthropicAnswer;
use crate::{
    chat::{ModelError, ReplyDelta},
    wire::{
        Events, ProviderIdentity,
        answer::{event_object, text_field},
    },
};

/// Why an event cannot be used.
enum AnthropicStreamError {
    /// The server reports an error of its own.
    Error(Value),
    /// The stream is malformed.
    Malformed(ContentBlockError),
}

/// Reads a streamed answer to its end.
pub(super) async fn read_stream(
    mut events: Events<'_>,
    provider: &ProviderIdentity,
    on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
) -> Result<AnthropicAnswer, ModelError> {
    let mut finished = AnthropicAnswer::default();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event_object(event, provider)?,
            // The answer is complete; only the closing event is missing.
            Err(_) if finished.stop_reason.is_some() => break,
            Err(error) => return Err(error),
        };
        let Some(mut event) = event else { continue };
        if text_field(&event, "type") == "message_stop" {
            return Ok(finished);
        }
        let deltas = apply_event(&mut finished, &mut event)
            .map_err(|flaw| flaw.into_model_error(provider))?;
        deltas.into_iter().for_each(&mut *on_delta);
    }
    match finished.stop_reason {
        Some(_) => Ok(finished),
        None => Err(provider.protocol_error("the stream ended before the answer did")),
    }
}

/// Applies one event and returns its delta, if any. Unknown events are ignored.
fn apply_event(
    finished: &mut AnthropicAnswer,
    event: &mut Value,
) -> Result<Option<ReplyDelta>, AnthropicStreamError> {
    let index = event.get("index").and_then(Value::as_u64);
    match text_field(event, "type") {
        "message_start" => {
            finished.update_metadata(&event["message"]);
            Ok(None)
        }
        "content_block_start" => {
            let block = event["content_block"].take();
            finished.blocks.begin_block(index, block).map_err(AnthropicStreamError::Malformed)
        }
        "content_block_delta" => finished
            .blocks
            .append_fragment(index, &mut event["delta"])
            .map_err(AnthropicStreamError::Malformed),
        "message_delta" => {
            finished.update_metadata(&event["delta"]);
            finished.update_metadata(event);
            Ok(None)
        }
        "error" => Err(AnthropicStreamError::Error(event.get("error").unwrap_or(event).clone())),
        _ => Ok(None),
    }
}

impl AnthropicStreamError {
    fn into_model_error(self, provider: &ProviderIdentity) -> ModelError {
        match self {
            Self::Error(error) => provider.answer_error(200, &error),
            Self::Malformed(error) => provider.protocol_error(&error.to_string()),
        }
    }
}
