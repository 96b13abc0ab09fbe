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

use self::reply::Finished;
use crate::{
    chat::{Attachment, ModelError, Reply, Request, ToolDefinition},
    endpoint::Endpoint,
    wire::{self, Exchange, Format, OnDelta, Pieces},
};

/// Anthropic's `messages`.
#[derive(Debug)]
pub(crate) struct Messages;

impl Format for Messages {
    fn path(&self, _: &Endpoint) -> String {
        "messages".to_owned()
    }

    fn takes(&self, file: &Attachment) -> bool {
        request::block_of(file).is_some()
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
            let events = wire::events(pieces, provider);
            let finished = stream::read(events, provider, on_delta).await?;
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
