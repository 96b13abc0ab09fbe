//! OpenAI's `responses`, streamed or whole.
//!
//! An answer is a list of items: thoughts, words, calls. The list is kept as it came and goes back
//! with the next request. Nothing is stored at the provider, so the model's thoughts travel with
//! us, sealed.
//!
//! Suggested reading order: `request`, `stream`, `reply`.

mod reply;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use sallyport_contract::BoxFuture;
use serde_json::Value;

use crate::{
    chat::{ChatModel, Delta, ModelError, Price, Reply, Request, ToolDefinition},
    endpoint::{Endpoint, SettingsError},
    prices,
    wire::{self, Line, WrittenTools, http},
};

/// Longest streamed answer. Every token comes in some 300 bytes of wrapping, and the whole answer
/// comes once more at the end, with the tools of the request around it.
const STREAM_BYTES_MAX: usize = 32 << 20;

/// A model behind OpenAI's `responses`.
#[derive(Debug)]
pub struct Responses {
    endpoint: Endpoint,
    line: Line,
    tools: WrittenTools,
}

impl Responses {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let line = Line::new(&endpoint, "responses", wire::headers(&endpoint)?)?;
        Ok(Self { endpoint, line, tools: WrittenTools::default() })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let accept = if self.endpoint.stream { "text/event-stream" } else { "application/json" };
        let tools = self.tools.json(request.tools, definitions);
        let body = request::body(&self.endpoint, request, tools.as_deref());
        let response = self.line.post(body, accept).await?;
        let (provider, origin) = (self.line.provider(), self.endpoint.origin());
        if wire::is_event_stream(&response, self.endpoint.stream) {
            let events = wire::events(http::pieces(response, STREAM_BYTES_MAX), provider);
            let answer = stream::read(events, provider, on_delta).await?;
            reply::reply(answer, request.messages, &origin).map_err(|e| e.of(provider))
        } else {
            let answer = self.line.whole(response).await?;
            let said = reply::deltas(&answer);
            let reply = reply::reply(answer, request.messages, &origin);
            let reply = reply.map_err(|e| e.of(provider))?;
            said.into_iter().for_each(on_delta);
            Ok(reply)
        }
    }
}

impl ChatModel for Responses {
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

fn definitions(tools: &[ToolDefinition]) -> Vec<Value> {
    tools.iter().map(request::definition).collect()
}
