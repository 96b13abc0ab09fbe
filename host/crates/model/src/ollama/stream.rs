//! Reads a streamed answer: one JSON object per line, each in the form of a whole answer.

use bytes::Bytes;
use futures::Stream;
use serde_json::Value;

use super::lines::BodyLines;
use super::reply::OllamaAnswer;
use crate::{
    chat::{ModelError, ReplyDelta},
    wire::{ProviderIdentity, ResponseBodyError, json},
};

/// Reads a streamed answer up to the line that marks its end.
pub(super) async fn read_stream(
    body: impl Stream<Item = Result<Bytes, ResponseBodyError>>,
    provider: &ProviderIdentity,
    on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
) -> Result<OllamaAnswer, ModelError> {
    let mut finished = OllamaAnswer::default();
    let mut lines = BodyLines::new(body);
    while let Some(line) = lines.next().await.map_err(|error| provider.body_error(&error))? {
        let mut piece = parse_line(&line, provider)?;
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            return Err(provider.answer_error(200, error));
        }
        let deltas = finished
            .apply_piece(&mut piece)
            .map_err(|e| provider.protocol_error(&e.to_string()))?;
        deltas.into_iter().for_each(&mut *on_delta);
        if finished.is_done {
            return Ok(finished);
        }
    }
    Err(provider.protocol_error("the stream ended before the answer did"))
}

fn parse_line(line: &[u8], provider: &ProviderIdentity) -> Result<Value, ModelError> {
    match json::parse_bytes(line) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(provider.protocol_error("a line is not an object")),
        Err(error) => Err(provider.protocol_error(&format!("a line is not JSON: {error}"))),
    }
}
