//! Reads a streamed answer: server-sent events, each in the form of a whole answer.

use futures::StreamExt;

use super::reply::GeminiAnswer;
use crate::{
    chat::{ModelError, ReplyDelta},
    wire::{Events, ProviderIdentity, answer::event_object},
};

/// Reads a streamed answer to its end.
///
/// No event marks the end, and the stream may give a finish reason more than once, with text
/// between. An answer is therefore complete if it has a finish reason and the stream ended
/// normally.
pub(super) async fn read_stream(
    mut events: Events<'_>,
    provider: &ProviderIdentity,
    on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
) -> Result<GeminiAnswer, ModelError> {
    let mut finished = GeminiAnswer::default();
    while let Some(event) = events.next().await {
        let Some(mut piece) = event_object(event?, provider)? else { continue };
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            return Err(provider.answer_error(200, error));
        }
        let deltas = finished
            .apply_piece(&mut piece)
            .map_err(|e| provider.protocol_error(&e.to_string()))?;
        deltas.into_iter().for_each(&mut *on_delta);
    }
    match finished.is_complete() {
        true => Ok(finished),
        false => Err(provider.protocol_error("the stream ended before the answer did")),
    }
}
