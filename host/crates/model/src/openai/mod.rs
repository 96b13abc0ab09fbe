//! Any endpoint that speaks OpenAI's `chat/completions`, streamed or whole.
//!
//! OpenAI, DeepSeek, Mistral, OpenRouter, llama.cpp, Ollama and many others answer to this one
//! protocol, each with small deviations. The adapter reads all of them and ignores what it does not
//! know. It sends one request for one answer and tries nothing twice: whether a turn is worth
//! another attempt is not known here.
//!
//! Suggested reading order: `settings`, `request`, `stream`, `reply`.

mod calls;
mod http;
mod merge;
mod provider;
mod reply;
mod request;
mod settings;
mod stream;

use std::sync::OnceLock;
use std::time::SystemTime;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use sallyport_contract::{BoxFuture, text};
use serde_json::Value;

use self::http::BodyError;
use self::provider::Provider;
use self::reply::Finished;
pub use self::request::definition;
pub use self::settings::{OpenAiSettings, SettingsError};
use crate::chat::{ChatModel, Delta, ModelError, Reply, Request};

/// Longest streamed answer. Every token comes in some 300 bytes of wrapping, so this is room for
/// 200,000 tokens.
const STREAM_BYTES_MAX: usize = 16 << 20;

/// Longest answer in one piece, far above what any model writes at once.
const WHOLE_BYTES_MAX: usize = 16 << 20;

/// Longest body of a refusal that is read; only its first sentences are shown.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// A model behind an OpenAI-compatible endpoint.
#[derive(Debug)]
pub struct OpenAi {
    settings: OpenAiSettings,
    endpoint: Url,
    name: String,
    provider: Provider,
    /// Made with the first request: a host that only lists its tools needs no TLS.
    client: OnceLock<Client>,
}

impl OpenAi {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(settings: OpenAiSettings) -> Result<Self, SettingsError> {
        let endpoint = settings.endpoint()?;
        let address = text::one_line(settings.base_url.trim().trim_end_matches('/'));
        let name = format!("{} at {address}", text::one_line(settings.model.trim()));
        let provider = Provider { name: address, key: settings.key.clone() };
        Ok(Self { settings, endpoint, name, provider, client: OnceLock::new() })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let response = self.send(&request::body(&self.settings, request)).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let taken = reply::ids(request.messages);
        if self.is_streamed(&response) {
            let body = http::pieces(response, STREAM_BYTES_MAX);
            stream::read(body, &self.provider, taken, on_delta).await
        } else {
            let finished = self.whole(response).await?;
            let reasoning_and_text: Vec<Delta> = reply::deltas(&finished.message).collect();
            let reply =
                reply::reply(finished, taken).map_err(|e| self.provider.broken(&e.to_string()))?;
            reasoning_and_text.into_iter().for_each(on_delta);
            Ok(reply)
        }
    }

    async fn send(&self, body: &Value) -> Result<Response, ModelError> {
        let accept = if self.settings.stream { "text/event-stream" } else { "application/json" };
        let mut request = self
            .client()?
            .post(self.endpoint.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept)
            .body(body.to_string());
        if let Some(header) = self.authorization() {
            request = request.header(AUTHORIZATION, header);
        }
        request.send().await.map_err(|e| self.provider.unreachable(&http::story(&e)))
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = http::client(self.endpoint.scheme() == "https")
            .map_err(|problem| self.provider.unreachable(&problem))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Marked as sensitive, so that no layer below shows it.
    fn authorization(&self) -> Option<HeaderValue> {
        let key = self.settings.key.as_ref()?;
        let mut header = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// What was asked for counts only when the server does not say what it sends.
    fn is_streamed(&self, response: &Response) -> bool {
        match content_type(response) {
            "text/event-stream" => true,
            "application/json" => false,
            _ => self.settings.stream,
        }
    }

    async fn whole(&self, response: Response) -> Result<Finished, ModelError> {
        let status = response.status().as_u16();
        let body = http::whole(response, WHOLE_BYTES_MAX).await.map_err(|e| self.lost(&e))?;
        let mut answer: Value = serde_json::from_slice(&body)
            .map_err(|e| self.provider.broken(&format!("not JSON: {e}")))?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(self.provider.refusal_inside(status, error));
        }
        let usage = reply::usage(&answer);
        let finish = answer.pointer("/choices/0/finish_reason").and_then(Value::as_str);
        let finish = finish.map(str::to_owned);
        match answer.pointer_mut("/choices/0/message").map(Value::take) {
            Some(Value::Object(message)) => Ok(Finished { message, finish, usage }),
            _ => Err(self.provider.broken("there is no message in the answer")),
        }
    }

    async fn refusal(&self, response: Response) -> ModelError {
        let status = response.status();
        if status.is_redirection() {
            return self.redirected(&response);
        }
        let retry_after = provider::retry_after(response.headers(), SystemTime::now());
        // A refusal is clear without its words; losing them must not hide it.
        let body = http::whole(response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
        let words = provider::words_of(&body);
        let message = if words.is_empty() { reason(status) } else { &words };
        self.provider.refusal(status.as_u16(), message, retry_after)
    }

    fn redirected(&self, response: &Response) -> ModelError {
        let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
        let message = format!(
            "it redirects to {}, which is not followed because the key would go along",
            target.unwrap_or("nowhere"),
        );
        self.provider.refusal(response.status().as_u16(), &message, None)
    }

    fn lost(&self, error: &BodyError) -> ModelError {
        match error {
            BodyError::Silent => self.provider.unreachable(&error.to_string()),
            _ => self.provider.broken(&error.to_string()),
        }
    }
}

impl ChatModel for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let time_max = self.settings.time_max;
            let exchange = self.exchange(request, on_delta);
            tokio::time::timeout(time_max, exchange).await.unwrap_or_else(|_| {
                Err(self.provider.unreachable(&format!("no complete answer within {time_max:?}")))
            })
        })
    }
}

fn content_type(response: &Response) -> &str {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.unwrap_or("").split(';').next().unwrap_or("").trim()
}

fn reason(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("no reason given")
}
