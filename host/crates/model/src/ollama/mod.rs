//! Models behind Ollama's `/api/chat`, streamed or whole.
//!
//! A stream is one JSON object a line. Calls come whole; results find them by name and order.
//!
//! Suggested reading order: `request`, `lines`, `stream`, `reply`.

mod lines;
mod reply;
mod request;
mod stream;

use reqwest::Response;
use sallyport_contract::BoxFuture;

use self::reply::Finished;
use crate::{
    chat::{ChatModel, Delta, ModelError, Price, Reply, Request},
    endpoint::{Endpoint, SettingsError},
    prices,
    wire::{self, Line, WrittenTools, http},
};

/// Longest streamed answer. Every token comes in some 150 bytes of wrapping.
const STREAM_BYTES_MAX: usize = 32 << 20;

/// A model behind Ollama's own protocol.
#[derive(Debug)]
pub struct Ollama {
    endpoint: Endpoint,
    line: Line,
    tools: WrittenTools,
}

impl Ollama {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let line = Line::new(&endpoint, "api/chat", wire::headers(&endpoint)?)?;
        Ok(Self { endpoint, line, tools: WrittenTools::default() })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let accept = if self.endpoint.stream { "application/x-ndjson" } else { "application/json" };
        let tools = self.tools.json(request.tools, request::definitions);
        let body = request::body(&self.endpoint, request, tools.as_deref());
        let response = self.line.post(body, accept).await?;
        let provider = self.line.provider();
        let finished = if self.is_streamed(&response) {
            stream::read(http::pieces(response, STREAM_BYTES_MAX), provider, on_delta).await?
        } else {
            let answer = self.line.whole(response).await?;
            Finished::of(answer, on_delta).map_err(|e| provider.broken(&e.to_string()))?
        };
        Ok(reply::reply(finished, request.messages, self.endpoint.origin()))
    }

    /// A whole answer is one line, so it is read either way where a stream was asked for.
    fn is_streamed(&self, response: &Response) -> bool {
        self.endpoint.stream || wire::content_type(response) == "application/x-ndjson"
    }
}

impl ChatModel for Ollama {
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
