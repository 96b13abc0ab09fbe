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

use self::reply::OllamaAnswer;
use crate::{
    chat::{
        AttachmentKind, FileAttachment, ModelError, ModelReply, ModelRequest, ModelToolDefinition,
    },
    endpoint::ModelEndpoint,
    wire::{AnswerContext, OnDelta, Pieces, WireFormat},
};

/// The media type of a stream: one JSON object per line.
const NDJSON: &str = "application/x-ndjson";

/// Ollama's `/api/chat`.
#[derive(Debug)]
pub(crate) struct OllamaFormat;

impl WireFormat for OllamaFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "api/chat".to_owned()
    }

    fn stream_type(&self) -> &'static str {
        NDJSON
    }

    /// A whole answer is a single line, so the stream reader reads both if a stream was requested.
    fn is_stream(&self, content_type: &str, was_requested: bool) -> bool {
        was_requested || content_type == NDJSON
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        file.kind() == AttachmentKind::Image
    }

    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        request::tool_definitions(tools).into()
    }

    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8> {
        request::build_body(endpoint, request, tools)
    }

    fn read_stream<'a>(
        &'a self,
        pieces: Pieces<'a>,
        exchange: &'a AnswerContext<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let AnswerContext { provider, messages, origin } = exchange;
            let finished = stream::read_stream(pieces, provider, on_delta).await?;
            Ok(reply::build_reply(finished, messages, origin.clone()))
        })
    }

    fn read_answer(
        &self,
        answer: Value,
        exchange: &AnswerContext<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let AnswerContext { provider, messages, origin } = exchange;
        let finished = OllamaAnswer::from_answer(answer, on_delta)
            .map_err(|e| provider.protocol_error(&e.to_string()))?;
        Ok(reply::build_reply(finished, messages, origin.clone()))
    }
}
