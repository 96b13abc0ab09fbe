//! Models behind Ollama's `/api/chat`, streamed or whole.
//!
//! A stream contains one JSON object per line. Calls arrive whole; results are matched to them by
//! name and order.
//!
//! Suggested reading order: `request`, `lines`, `stream`, `reply`.

mod lines;
mod reply;
mod request;
mod stream;

use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use self::reply::Finished;
use crate::{
    chat::{Attachment, Kind, ModelError, Reply, Request, ToolDefinition},
    endpoint::Endpoint,
    wire::{Exchange, Format, OnDelta, Pieces},
};

/// The media type of a stream: one JSON object per line.
const NDJSON: &str = "application/x-ndjson";

/// Ollama's `/api/chat`.
#[derive(Debug)]
pub(crate) struct ApiChat;

impl Format for ApiChat {
    fn path(&self, _: &Endpoint) -> String {
        "api/chat".to_owned()
    }

    fn stream_type(&self) -> &'static str {
        NDJSON
    }

    /// A whole answer is a single line, so the stream reader reads both if a stream was requested.
    fn is_stream(&self, content_type: &str, asked: bool) -> bool {
        asked || content_type == NDJSON
    }

    fn takes(&self, file: &Attachment) -> bool {
        file.kind() == Kind::Image
    }

    fn tools(&self, tools: &[ToolDefinition]) -> Value {
        request::definitions(tools).into()
    }

    fn body(&self, endpoint: &Endpoint, request: Request<'_>, tools: Option<&RawValue>) -> Vec<u8> {
        request::body(endpoint, request, tools)
    }

    fn stream<'a>(
        &'a self,
        pieces: Pieces<'a>,
        exchange: &'a Exchange<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let Exchange { provider, messages, origin } = exchange;
            let finished = stream::read(pieces, provider, on_delta).await?;
            Ok(reply::reply(finished, messages, origin.clone()))
        })
    }

    fn whole(
        &self,
        answer: Value,
        exchange: &Exchange<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, ModelError> {
        let Exchange { provider, messages, origin } = exchange;
        let finished =
            Finished::of(answer, on_delta).map_err(|e| provider.broken(&e.to_string()))?;
        Ok(reply::reply(finished, messages, origin.clone()))
    }
}
