//! A streamed answer: server-sent events, each a piece of the answer in the form of a whole one.

use futures::StreamExt;

use super::reply::Finished;
use crate::{
    chat::{Delta, ModelError},
    wire::{Events, Provider, answer::object},
};

/// Reads a streamed answer to its end. There is no event that ends it; an answer is whole once a
/// reason for its end was told.
pub(super) async fn read(
    mut events: Events<'_>,
    provider: &Provider,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Finished, ModelError> {
    let mut finished = Finished::default();
    while let Some(event) = events.next().await {
        let piece = match event {
            Ok(event) => object(event, provider)?,
            // All has been said; only the end of the stream is missing.
            Err(_) if finished.is_complete() => break,
            Err(error) => return Err(error),
        };
        let Some(mut piece) = piece else { continue };
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
