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
    chat::{Attachment, ModelError, Reply, Request, ToolDefinition},
    endpoint::Endpoint,
    wire::{self, Exchange, Format, OnDelta, Pieces},
};

/// OpenAI's `responses`.
#[derive(Debug)]
pub(crate) struct Responses;

impl Format for Responses {
    fn path(&self, _: &Endpoint) -> String {
        "responses".to_owned()
    }

    fn takes(&self, file: &Attachment) -> bool {
        request::takes(file)
    }

    fn tools(&self, tools: &[ToolDefinition]) -> Value {
        tools.iter().map(request::definition).collect()
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
            let answer = stream::read(wire::events(pieces, provider), provider, on_delta).await?;
            reply::reply(answer, messages, origin).map_err(|flaw| flaw.of(provider))
        })
    }

    fn whole(
        &self,
        answer: Value,
        exchange: &Exchange<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, ModelError> {
        let Exchange { provider, messages, origin } = exchange;
        let said = reply::deltas(&answer);
        let reply = reply::reply(answer, messages, origin).map_err(|flaw| flaw.of(provider))?;
        said.into_iter().for_each(on_delta);
        Ok(reply)
    }
}
