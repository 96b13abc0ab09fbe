//! Server-sent events, the form in which most providers stream an answer.

use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use sse_stream::{Sse, SseByteStream};

use super::{ProviderIdentity, ResponseBodyError};
use crate::chat::ModelError;

/// The events of one answer, in order.
pub(crate) type Events<'a> = Pin<Box<dyn Stream<Item = Result<Sse, ModelError>> + Send + 'a>>;

/// Reads a body as events. Errors become those of the provider.
pub(crate) fn read_events<'a>(
    body: impl Stream<Item = Result<Bytes, ResponseBodyError>> + Send + 'a,
    provider: &'a ProviderIdentity,
) -> Events<'a> {
    Box::pin(
        SseByteStream::new(body).map(|event| event.map_err(|error| stream_error(&error, provider))),
    )
}

fn stream_error(error: &sse_stream::Error, provider: &ProviderIdentity) -> ModelError {
    let cause = match error {
        sse_stream::Error::Body(cause) => cause.downcast_ref::<ResponseBodyError>(),
        _ => None,
    };
    match cause {
        Some(cause) => provider.body_error(cause),
        None => provider.protocol_error(&error.to_string()),
    }
}
