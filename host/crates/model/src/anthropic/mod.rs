//! Models behind Anthropic's `messages`, streamed or whole.
//!
//! A message is a list of blocks: text, thinking with a signature, calls. The whole list is kept
//! and goes back as it came; a call that follows on thinking is refused without it. The parts of a
//! request that stay the same are marked, so that the provider reads them from its cache.
//!
//! Suggested reading order: `request`, `tuning`, `stream`, `blocks`, `reply`.

mod blocks;
mod reply;
mod request;
mod stream;
mod tuning;

use sallyport_contract::BoxFuture;

use self::reply::Finished;
use crate::{
    chat::{ChatModel, Delta, ModelError, Price, Reply, Request},
    endpoint::{Endpoint, SettingsError},
    prices,
    wire::{self, Line, WrittenTools, http},
};

/// Longest streamed answer. Every token comes in some 150 bytes of wrapping, so this is room for
/// twice the longest answer that any model of the provider gives.
const STREAM_BYTES_MAX: usize = 32 << 20;

/// A model behind Anthropic's protocol.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
    line: Line,
    tools: WrittenTools,
}

impl Anthropic {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let line = Line::new(&endpoint, "messages", wire::headers(&endpoint)?)?;
        Ok(Self { endpoint, line, tools: WrittenTools::default() })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let accept = if self.endpoint.stream { "text/event-stream" } else { "application/json" };
        let tools = self.tools.json(request.tools, request::definitions);
        let body = request::body(&self.endpoint, request, tools.as_deref());
        let response = self.line.post(body, accept).await?;
        let provider = self.line.provider();
        let finished = if wire::is_event_stream(&response, self.endpoint.stream) {
            let events = wire::events(http::pieces(response, STREAM_BYTES_MAX), provider);
            stream::read(events, provider, on_delta).await?
        } else {
            let answer = self.line.whole(response).await?;
            Finished::of(answer, on_delta).map_err(|e| provider.broken(&e.to_string()))?
        };
        Ok(reply::reply(finished, request.messages, self.endpoint.origin()))
    }
}

impl ChatModel for Anthropic {
    fn name(&self) -> &str {
        self.line.name()
    }

    fn price(&self) -> Option<Price> {
        self.endpoint.price.or_else(|| prices::of(&self.endpoint, &[]))
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let exchange = self.exchange(request, on_delta);
        Box::pin(self.line.provider().within(self.endpoint.time_max, exchange))
    }
}
