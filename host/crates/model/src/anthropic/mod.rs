//! Models behind Anthropic's `messages`, streamed or whole.
//!
//! A message is a list of blocks: text, thinking with a signature, calls. The whole list is kept
//! and sent back unchanged, because the provider refuses a call that follows thinking without that
//! thinking. The parts of a request that stay the same are marked, so that the provider reads them
//! from its cache.
//!
//! Suggested reading order: `request`, `tuning`, `stream`, `blocks`, `reply`.

mod blocks;
mod reply;
mod request;
mod stream;
mod tuning;

use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use self::reply::AnthropicAnswer;
use crate::{
    chat::{FileAttachment, ModelError, ModelReply, ModelRequest, ModelToolDefinition},
    endpoint::ModelEndpoint,
    wire::{self, AnswerContext, OnDelta, Pieces, WireFormat},
};

/// Anthropic's `messages`.
#[derive(Debug)]
pub(crate) struct AnthropicFormat;

impl WireFormat for AnthropicFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "messages".to_owned()
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        request::file_block_type(file).is_some()
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
            let events = wire::read_events(pieces, provider);
            let finished = stream::read_stream(events, provider, on_delta).await?;
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
        let finished = AnthropicAnswer::from_answer(answer, on_delta)
            .map_err(|e| provider.protocol_error(&e.to_string()))?;
        Ok(reply::build_reply(finished, messages, origin.clone()))
    }
}
