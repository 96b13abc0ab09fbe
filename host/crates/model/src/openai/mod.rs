//! Any endpoint that speaks OpenAI's `chat/completions`, streamed or whole.
//!
//! OpenAI, DeepSeek, Mistral, OpenRouter, llama.cpp, Ollama and many others answer to this one
//! protocol, each with small deviations. The adapter reads all of them and ignores what it does not
//! know. It sends one request for one answer and tries nothing twice: whether a turn is worth
//! another attempt is not known here.
//!
//! Suggested reading order: `settings`, `request`, `stream`, `reply`.

mod calls;
mod merge;
mod reply;
mod request;
mod stream;

use reqwest::{
    Response,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use sallyport_contract::BoxFuture;
use serde_json::Value;

use self::reply::Finished;
pub use self::request::definition;
use crate::{
    chat::{ChatModel, Delta, ModelError, Reply, Request},
    endpoint::{Endpoint, SettingsError},
    wire::{self, Line, http},
};

/// Longest streamed answer. Every token comes in some 300 bytes of wrapping, so this is room for
/// 200,000 tokens.
const STREAM_BYTES_MAX: usize = 16 << 20;

/// A model behind an OpenAI-compatible endpoint.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    line: Line,
}

impl OpenAi {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let line = Line::new(&endpoint, "chat/completions", headers(&endpoint)?)?;
        Ok(Self { endpoint, line })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let accept = if self.endpoint.stream { "text/event-stream" } else { "application/json" };
        let body = request::body(&self.endpoint, request).to_string().into_bytes();
        let response = self.line.post(body, accept).await?;
        let taken = reply::ids(request.messages);
        let (provider, origin) = (self.line.provider(), self.endpoint.origin());
        if self.is_streamed(&response) {
            let body = http::pieces(response, STREAM_BYTES_MAX);
            stream::read(body, provider, taken, &origin, on_delta).await
        } else {
            let finished = self.whole(response).await?;
            let reasoning_and_text: Vec<Delta> = reply::deltas(&finished.message).collect();
            let reply = reply::reply(finished, taken, &origin)
                .map_err(|e| provider.broken(&e.to_string()))?;
            reasoning_and_text.into_iter().for_each(on_delta);
            Ok(reply)
        }
    }

    /// What was asked for counts only when the server does not say what it sends.
    fn is_streamed(&self, response: &Response) -> bool {
        match wire::content_type(response) {
            "text/event-stream" => true,
            "application/json" => false,
            _ => self.endpoint.stream,
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

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let exchange = self.exchange(request, on_delta);
        Box::pin(self.line.provider().within(self.endpoint.time_max, exchange))
    }
}

/// The key is marked as sensitive, so that no layer below shows it.
fn headers(endpoint: &Endpoint) -> Result<HeaderMap, SettingsError> {
    let Some(key) = &endpoint.key else { return Ok(HeaderMap::new()) };
    let header = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
    let mut header = header.map_err(|_| SettingsError::Key)?;
    header.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, header)]))
}
