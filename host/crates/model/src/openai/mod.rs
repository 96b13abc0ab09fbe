//! Models behind OpenAI's `chat/completions`, streamed or whole.
//!
//! OpenAI, DeepSeek, Mistral, OpenRouter, llama.cpp, Ollama and many others implement this
//! protocol, each with small deviations. The adapter reads all of them and ignores fields that it
//! does not know.
//!
//! Suggested reading order: `request`, `stream`, `reply`.

mod calls;
mod merge;
mod reply;
mod request;
mod short_ids;
mod stream;

use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use self::reply::CompletionAnswer;
pub use self::request::tool_definition;
use crate::{
    chat::{FileAttachment, ModelError, ModelReply, ModelRequest, ModelToolDefinition, ReplyDelta},
    endpoint::ModelEndpoint,
    wire::{self, AnswerContext, OnDelta, Pieces, WireFormat},
};

/// `chat/completions`.
#[derive(Debug)]
pub(crate) struct ChatCompletionsFormat;

impl WireFormat for ChatCompletionsFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "chat/completions".to_owned()
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        request::can_send_file(file)
    }

    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        tools.iter().map(tool_definition).collect()
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
            stream::read_stream(events, provider, messages, origin, on_delta).await
        })
    }

    fn read_answer(
        &self,
        answer: Value,
        exchange: &AnswerContext<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let AnswerContext { provider, messages, origin } = exchange;
        let broken = |problem: &str| provider.protocol_error(problem);
        let finished = CompletionAnswer::from_answer(answer)
            .ok_or_else(|| broken("there is no message in the answer"))?;
        let deltas: Vec<ReplyDelta> = reply::message_deltas(&finished.message).collect();
        let reply =
            reply::build_reply(finished, messages, origin).map_err(|e| broken(&e.to_string()))?;
        deltas.into_iter().for_each(&mut *on_delta);
        let calls = reply.message.calls.iter().map(|call| call.name.clone());
        calls.for_each(|name| on_delta(ReplyDelta::CallBegun { name }));
        Ok(reply)
    }
}
