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
mod short;
mod stream;

use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use self::reply::Finished;
pub use self::request::definition;
use crate::{
    chat::{Attachment, Delta, ModelError, Reply, Request, ToolDefinition},
    endpoint::Endpoint,
    wire::{self, Exchange, Format, OnDelta, Pieces},
};

/// `chat/completions`.
#[derive(Debug)]
pub(crate) struct Completions;

impl Format for Completions {
    fn path(&self, _: &Endpoint) -> String {
        "chat/completions".to_owned()
    }

    fn takes(&self, file: &Attachment) -> bool {
        request::takes(file)
    }

    fn tools(&self, tools: &[ToolDefinition]) -> Value {
        tools.iter().map(definition).collect()
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
            let events = wire::events(pieces, provider);
            stream::read(events, provider, messages, origin, on_delta).await
        })
    }

    fn whole(
        &self,
        answer: Value,
        exchange: &Exchange<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, ModelError> {
        let Exchange { provider, messages, origin } = exchange;
        let broken = |problem: &str| provider.broken(problem);
        let finished =
            Finished::of(answer).ok_or_else(|| broken("there is no message in the answer"))?;
        let said: Vec<Delta> = reply::deltas(&finished.message).collect();
        let reply = reply::reply(finished, messages, origin).map_err(|e| broken(&e.to_string()))?;
        said.into_iter().for_each(&mut *on_delta);
        let calls = reply.message.calls.iter().map(|call| call.name.clone());
        calls.for_each(|name| on_delta(Delta::CallBegun { name }));
        Ok(reply)
    }
}
