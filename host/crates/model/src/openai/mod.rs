//! Any endpoint that speaks OpenAI's `chat/completions`, streamed or whole.
//!
//! OpenAI, DeepSeek, Mistral, OpenRouter, llama.cpp, Ollama and many others answer to this one
//! protocol, each with small deviations. The adapter reads all of them and ignores what it does not
//! know. It sends one request for one answer and tries nothing twice: whether a turn is worth
//! another attempt is not known here.
//!
//! Suggested reading order: `request`, `stream`, `reply`.

mod calls;
mod merge;
mod reply;
mod request;
mod short;
mod stream;

use reqwest::Response;
use sallyport_contract::BoxFuture;
use serde_json::Value;

use self::reply::Finished;
pub use self::request::definition;
use crate::{
    chat::{ChatModel, Delta, ModelError, Price, Reply, Request, ToolDefinition},
    endpoint::{Endpoint, SettingsError},
    prices,
    wire::{self, Line, WrittenTools, http},
};

/// Longest streamed answer. Every token comes in some 300 bytes of wrapping, so this is room for
/// 200,000 tokens.
const STREAM_BYTES_MAX: usize = 16 << 20;

/// A model behind an OpenAI-compatible endpoint.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    line: Line,
    tools: WrittenTools,
}

impl OpenAi {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let line = Line::new(&endpoint, "chat/completions", wire::headers(&endpoint)?)?;
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
            stream::read(events, provider, request.messages, &origin, on_delta).await
        } else {
            let finished = self.whole(response).await?;
            let said: Vec<Delta> = reply::deltas(&finished.message).collect();
            let reply = reply::reply(finished, request.messages, &origin)
                .map_err(|e| provider.broken(&e.to_string()))?;
            said.into_iter().for_each(&mut *on_delta);
            let calls = reply.message.calls.iter().map(|call| call.name.clone());
            calls.for_each(|name| on_delta(Delta::CallBegun { name }));
            Ok(reply)
        }
    }

    async fn whole(&self, response: Response) -> Result<Finished, ModelError> {
        let mut answer: Value = self.line.whole(response).await?;
        let usage = reply::usage(&answer);
        let finish = answer.pointer("/choices/0/finish_reason").and_then(Value::as_str);
        let finish = finish.map(str::to_owned);
        match answer.pointer_mut("/choices/0/message").map(Value::take) {
            Some(Value::Object(message)) => Ok(Finished { message, finish, usage }),
            _ => Err(self.line.provider().broken("there is no message in the answer")),
        }
    }
}

impl ChatModel for OpenAi {
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
    tools.iter().map(definition).collect()
}
