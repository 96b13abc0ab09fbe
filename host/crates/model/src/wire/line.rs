//! The line to one server: one address, one client, and the headers that go with every request.

use std::{sync::OnceLock, time::SystemTime};

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION},
};
use sallyport_contract::text;
use serde_json::Value;

use super::{
    http::{self, BodyError},
    json,
    provider::{self, Provider},
};
use crate::{
    chat::ModelError,
    endpoint::{Endpoint, SettingsError},
};

/// Longest answer in one piece, far above what any model writes at once.
const WHOLE_BYTES_MAX: usize = 16 << 20;

/// Longest body of a refusal that is read; only its first sentences are shown.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// A server, and the way to it.
#[derive(Debug)]
pub(crate) struct Line {
    url: Url,
    headers: HeaderMap,
    name: String,
    provider: Provider,
    /// Made with the first request: a host that only lists its tools needs no TLS.
    client: OnceLock<Client>,
}

impl Line {
    /// Takes the address of one method. Nothing is opened or sent before the first request.
    pub(crate) fn new(
        endpoint: &Endpoint,
        path: &str,
        headers: HeaderMap,
    ) -> Result<Self, SettingsError> {
        Ok(Self::to(endpoint, endpoint.url(path)?, headers))
    }

    /// Takes an address that is not about one model.
    pub(crate) fn to(endpoint: &Endpoint, url: Url, headers: HeaderMap) -> Self {
        let address = text::one_line(endpoint.base_url.trim().trim_end_matches('/'));
        let name = format!("{} at {address}", text::one_line(endpoint.model.trim()));
        let provider = Provider { name: address, key: endpoint.key.clone() };
        Self { url, headers, name, provider, client: OnceLock::new() }
    }

    /// The model and its address, for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The other side, for errors of the adapter's own.
    pub(crate) fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Sends a body and returns the answer, once it is one: a refusal is an error with the
    /// provider's own words.
    pub(crate) async fn post(&self, body: Vec<u8>, accept: &str) -> Result<Response, ModelError> {
        let request = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, accept)
            .body(body);
        self.answer(request.send().await).await
    }

    /// Asks without a body.
    pub(crate) async fn get(&self) -> Result<Response, ModelError> {
        let request = self.client()?.get(self.url.clone()).headers(self.headers.clone());
        self.answer(request.header(ACCEPT, JSON).send().await).await
    }

    /// Reads a whole answer as JSON. An `error` in it is a refusal.
    pub(crate) async fn whole(&self, response: Response) -> Result<Value, ModelError> {
        let status = response.status().as_u16();
        let body = http::whole(response, WHOLE_BYTES_MAX).await.map_err(|e| self.lost(&e))?;
        let answer: Value =
            json::read_bytes(&body).map_err(|e| self.provider.broken(&format!("not JSON: {e}")))?;
        match answer.get("error").filter(|error| !error.is_null()) {
            Some(error) => Err(self.provider.refusal_inside(status, error)),
            None => Ok(answer),
        }
    }

    /// Tells of a body that did not come to its end.
    pub(crate) fn lost(&self, error: &BodyError) -> ModelError {
        self.provider.lost(error)
    }

    async fn answer(&self, sent: reqwest::Result<Response>) -> Result<Response, ModelError> {
        let response = sent.map_err(|e| self.provider.unreachable(&http::story(&e)))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => Err(self.redirected(&response)),
            _ => Err(self.refusal(response).await),
        }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = http::client(self.url.scheme() == "https")
            .map_err(|problem| self.provider.unreachable(&problem))?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn refusal(&self, response: Response) -> ModelError {
        let status = response.status();
        let retry_after = provider::retry_after(response.headers(), SystemTime::now());
        // A refusal is clear without its words; losing them must not hide it.
        let body = http::whole(response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
        let retry_after = retry_after.or_else(|| provider::wait_of(&body));
        let words = provider::words_of(&body);
        let message = if words.is_empty() { reason(status) } else { &words };
        self.provider.refusal(status.as_u16(), &provider::code_of(&body), message, retry_after)
    }

    fn redirected(&self, response: &Response) -> ModelError {
        let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
        let message = format!(
            "it redirects to {}, which is not followed because the key would go along",
            target.unwrap_or("nowhere"),
        );
        self.provider.refusal(response.status().as_u16(), "", &message, None)
    }
}

/// The media type of an answer, without its parameters.
pub(super) fn content_type(response: &Response) -> &str {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.unwrap_or("").split(';').next().unwrap_or("").trim()
}

/// The media type of an answer in events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The media type of a whole answer.
pub(crate) const JSON: &str = "application/json";

/// True for an answer in events. What was asked for counts only when the server does not say what
/// it sends.
pub(super) fn is_event_stream(content_type: &str, was_asked: bool) -> bool {
    match content_type {
        EVENT_STREAM => true,
        JSON => false,
        _ => was_asked,
    }
}

fn reason(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("no reason given")
}
