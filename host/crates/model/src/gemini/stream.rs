//! Reads a streamed answer: server-sent events, each in the form of a whole answer.

use futures::StreamExt;

use super::reply::Finished;
use crate::{
    chat::{Delta, ModelError},
    wire::{Events, Provider, answer::object},
};

/// Reads a streamed answer to its end.
///
/// No event marks the end, and the stream may give a finish reason more than once, with text
/// between. An answer is therefore complete if it has a finish reason and the stream ended
/// normally.
pub(super) async fn read(
    mut events: Events<'_>,
    provider: &Provider,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Finished, ModelError> {
    let mut finished = Finished::default();
    while let Some(event) = events.next().await {
        let Some(mut piece) = object(event?, provider)? else { continue };
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            return Err(provider.refusal_inside(200, error));
        }
        let said = finished.take(&mut piece).map_err(|e| provider.broken(&e.to_string()))?;
        said.into_iter().for_each(&mut *on_delta);
    }
    match finished.is_complete() {
        true => Ok(finished),
        false => Err(provider.broken("the stream ended before the answer did")),
    }
}
