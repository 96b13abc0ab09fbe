//! The headers of every request: the key, and the protocol version for protocols that require one.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::{
    endpoint::{EndpointSettingsError, ModelEndpoint},
    protocol::ProviderProtocol,
};

/// The version of Anthropic's protocol that the adapter implements.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Returns the headers of an endpoint. The key is marked as sensitive, so that no layer below shows
/// it. It is never part of a URL, which logs would keep.
///
/// # Errors
///
/// Returns an error if a header cannot carry the key.
pub(crate) fn auth_headers(endpoint: &ModelEndpoint) -> Result<HeaderMap, EndpointSettingsError> {
    let mut headers = HeaderMap::new();
    if endpoint.protocol == ProviderProtocol::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    if let Some(key) = &endpoint.key {
        let (name, before) = key_header(endpoint.protocol);
        let value = HeaderValue::from_str(&format!("{before}{}", key.expose()));
        let mut value = value.map_err(|_| EndpointSettingsError::Key)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the header for a key, and the prefix of its value.
fn key_header(protocol: ProviderProtocol) -> (HeaderName, &'static str) {
    match protocol {
        ProviderProtocol::OpenAiChat
        | ProviderProtocol::OpenAiResponses
        | ProviderProtocol::Ollama => (AUTHORIZATION, "Bearer "),
        ProviderProtocol::Anthropic => (HeaderName::from_static("x-api-key"), ""),
        ProviderProtocol::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_contract::Secret;

    use super::*;

    #[test]
    fn each_protocol_has_its_header_and_no_key_is_shown() {
        let rows = [
            (ProviderProtocol::OpenAiChat, "authorization", "Bearer k-1"),
            (ProviderProtocol::OpenAiResponses, "authorization", "Bearer k-1"),
            (ProviderProtocol::Ollama, "authorization", "Bearer k-1"),
            (ProviderProtocol::Anthropic, "x-api-key", "k-1"),
            (ProviderProtocol::Gemini, "x-goog-api-key", "k-1"),
        ];
        for (protocol, name, want) in rows {
            let endpoint = ModelEndpoint::new(protocol, "http://x", "m");
            assert!(!auth_headers(&endpoint).unwrap().contains_key(name));
            let endpoint = ModelEndpoint { key: Some(Secret::new("k-1")), ..endpoint };
            let headers = auth_headers(&endpoint).unwrap();
            assert_eq!(headers[name], want);
            assert!(!format!("{headers:?}").contains("k-1"));
            assert_eq!(
                headers.contains_key("anthropic-version"),
                protocol == ProviderProtocol::Anthropic
            );
        }
    }
}
