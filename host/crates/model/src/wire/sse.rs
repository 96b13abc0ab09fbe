//! Server-sent events, the form in which most providers stream an answer.

use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use sse_stream::{Sse, SseByteStream};

use super::{BodyError, Provider};
use crate::chat::ModelError;

/// The events of one answer, in order.
pub(crate) type Events<'a> = Pin<Box<dyn Stream<Item = Result<Sse, ModelError>> + Send + 'a>>;

/// Reads a body as events. Errors become those of the provider.
pub(crate) fn events<'a>(
    body: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'a,
    provider: &'a Provider,
) -> Events<'a> {
    Box::pin(SseByteStream::new(body).map(|event| event.map_err(|error| lost(&error, provider))))
}

fn lost(error: &sse_stream::Error, provider: &Provider) -> ModelError {
    let cause = match error {
        sse_stream::Error::Body(cause) => cause.downcast_ref::<BodyError>(),
        _ => None,
    };
    match cause {
        Some(cause) => provider.lost(cause),
        None => provider.broken(&error.to_string()),
    }
}
