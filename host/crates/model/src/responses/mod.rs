//! Models behind OpenAI's `responses`, streamed or whole.
//!
//! An answer is a list of items: thoughts, messages, calls. The list is kept unchanged and sent
//! back with the next request. The provider stores nothing, so the model's thoughts are sent back
//! too, encrypted.
//!
//! Suggested reading order: `request`, `stream`, `reply`.

mod reply;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use crate::{
    chat::{FileAttachment, ModelError, ModelReply, ModelRequest, ModelToolDefinition},
    endpoint::ModelEndpoint,
    wire::{self, AnswerContext, OnDelta, Pieces, WireFormat},
};

/// OpenAI's `responses`.
#[derive(Debug)]
pub(crate) struct ResponsesFormat;

impl WireFormat for ResponsesFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "responses".to_owned()
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        request::can_send_file(file)
    }

    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        tools.iter().map(request::tool_definition).collect()
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
            let answer =
                stream::read_stream(wire::read_events(pieces, provider), provider, on_delta)
                    .await?;
            reply::build_reply(answer, messages, origin)
                .map_err(|flaw| flaw.to_model_error(provider))
        })
    }

    fn read_answer(
        &self,
        answer: Value,
        exchange: &AnswerContext<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let AnswerContext { provider, messages, origin } = exchange;
        let deltas = reply::answer_deltas(&answer);
        let reply = reply::build_reply(answer, messages, origin)
            .map_err(|flaw| flaw.to_model_error(provider))?;
        deltas.into_iter().for_each(on_delta);
        Ok(reply)
    }
}
