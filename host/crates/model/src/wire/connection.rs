//! The connection to one server: one URL, one client, and the headers of every request.

use std::{sync::OnceLock, time::SystemTime};

use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION},
};
use sallyport_contract::text;
use sallyport_http_client::error_causes;
use serde_json::Value;

use super::{
    http::{self, ResponseBodyError},
    json,
    provider::{self, ProviderIdentity},
};
use crate::{
    chat::ModelError,
    endpoint::{EndpointSettingsError, ModelEndpoint},
};

/// Longest answer in one piece, in bytes, far above what any model writes in one answer.
const WHOLE_BYTES_MAX: usize = 16 << 20;

/// Longest body of a refusal that is read, in bytes. Only its first sentences are shown.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// A server and the connection to it.
#[derive(Debug)]
pub(crate) struct ProviderConnection {
    url: Url,
    headers: HeaderMap,
    name: String,
    provider: ProviderIdentity,
    /// Created with the first request. A host that only lists its tools needs no TLS.
    client: OnceLock<Client>,
}

impl ProviderConnection {
    /// Creates a line to a method of the model. It does not connect before the first request.
    pub(crate) fn new(
        endpoint: &ModelEndpoint,
        path: &str,
        headers: HeaderMap,
    ) -> Result<Self, EndpointSettingsError> {
        Ok(Self::with_url(endpoint, endpoint.model_url(path)?, headers))
    }

    /// Creates a line to a URL that does not depend on the model.
    pub(crate) fn with_url(endpoint: &ModelEndpoint, url: Url, headers: HeaderMap) -> Self {
        let address = text::escape_line(endpoint.base_url.trim().trim_end_matches('/'));
        let name = format!("{} at {address}", text::escape_line(endpoint.model.trim()));
        let provider = ProviderIdentity { name: address, key: endpoint.key.clone() };
        Self { url, headers, name, provider, client: OnceLock::new() }
    }

    /// Returns the model and its address, in human-readable form.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the provider, which creates errors of the adapter's own.
    pub(crate) fn provider(&self) -> &ProviderIdentity {
        &self.provider
    }

    /// Sends a body and returns the response if its status is a success. A refusal becomes an error
    /// with the provider's message.
    pub(crate) async fn post(&self, body: Vec<u8>, accept: &str) -> Result<Response, ModelError> {
        let request = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, accept)
            .body(body);
        self.check_response(request.send().await).await
    }

    /// Sends a GET request.
    pub(crate) async fn get(&self) -> Result<Response, ModelError> {
        let request = self.client()?.get(self.url.clone()).headers(self.headers.clone());
        self.check_response(request.header(ACCEPT, JSON).send().await).await
    }

    /// Reads a whole answer as JSON. An `error` in it is a refusal.
    pub(crate) async fn read_json(&self, response: Response) -> Result<Value, ModelError> {
        let status = response.status().as_u16();
        let body =
            http::read_body(response, WHOLE_BYTES_MAX).await.map_err(|e| self.body_error(&e))?;
        let answer: Value = json::parse_bytes(&body)
            .map_err(|e| self.provider.protocol_error(&format!("not JSON: {e}")))?;
        match answer.get("error").filter(|error| !error.is_null()) {
            Some(error) => Err(self.provider.answer_error(status, error)),
            None => Ok(answer),
        }
    }

    /// Returns the error for an incomplete body.
    pub(crate) fn body_error(&self, error: &ResponseBodyError) -> ModelError {
        self.provider.body_error(error)
    }

    async fn check_response(
        &self,
        sent: reqwest::Result<Response>,
    ) -> Result<Response, ModelError> {
        let response = sent.map_err(|e| self.provider.unreachable_error(&error_causes(&e)))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => Err(self.redirect_error(&response)),
            _ => Err(self.refusal_error(response).await),
        }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = http::build_client(self.url.scheme() == "https")
            .map_err(|problem| self.provider.unreachable_error(&problem))?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn refusal_error(&self, response: Response) -> ModelError {
        let status = response.status();
        let retry_after = provider::retry_after(response.headers(), SystemTime::now());
        // A refusal is clear without its message, so an unreadable body must not hide it.
        let body = http::read_body(response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
        self.provider.response_error(status, &body, retry_after)
    }

    fn redirect_error(&self, response: &Response) -> ModelError {
        let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
        let message = format!(
            "it redirects to {}, which is not followed because the key would go along",
            target.unwrap_or("nowhere"),
        );
        self.provider.refusal_error(response.status().as_u16(), "", &message, None)
    }
}

/// The media type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The media type of a whole answer.
pub(crate) const JSON: &str = "application/json";

/// The media type of a stream of lines, each with one JSON object.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Returns true for an answer that is streamed as `stream_type`. The request decides if the media
/// type does not. A whole answer is also a stream of one line.
pub(crate) fn is_stream(response: &Response, stream_type: &str, was_requested: bool) -> bool {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = header.unwrap_or("").split(';').next().unwrap_or("").trim();
    content_type == stream_type
        || (was_requested && (content_type != JSON || stream_type == NDJSON))
}
