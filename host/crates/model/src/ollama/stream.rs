//! Reads a streamed answer: one JSON object per line, each in the form of a whole answer.

use bytes::Bytes;
use futures::Stream;
use serde_json::Value;

use super::lines::Lines;
use super::reply::Finished;
use crate::{
    chat::{Delta, ModelError},
    wire::{BodyError, Provider, json},
};

/// Reads a streamed answer up to the line that marks its end.
pub(super) async fn read(
    body: impl Stream<Item = Result<Bytes, BodyError>>,
    provider: &Provider,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Finished, ModelError> {
    let mut finished = Finished::default();
    let mut lines = Lines::of(body);
    while let Some(line) = lines.next().await.map_err(|error| provider.lost(&error))? {
        let mut piece = object(&line, provider)?;
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            return Err(provider.refusal_inside(200, error));
        }
        let said = finished.take(&mut piece).map_err(|e| provider.broken(&e.to_string()))?;
        said.into_iter().for_each(&mut *on_delta);
        if finished.is_done {
            return Ok(finished);
        }
    }
    Err(provider.broken("the stream ended before the answer did"))
}

fn object(line: &[u8], provider: &Provider) -> Result<Value, ModelError> {
    match json::read_bytes(line) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(provider.broken("a line is not an object")),
        Err(error) => Err(provider.broken(&format!("a line is not JSON: {error}"))),
    }
}
