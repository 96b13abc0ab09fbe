//! The settings of a model: its server, its protocol and its limits.

use std::time::Duration;

use reqwest::Url;
use sallyport_contract::Secret;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{chat::TokenPrice, protocol::ProviderProtocol};

/// Longest wait for one whole answer. Slow local models think for minutes.
const TIME_MAX: Duration = Duration::from_secs(600);

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallingMode {
    /// With the function calling of the protocol.
    #[default]
    Native,
    /// With plain JSON in its text, for models without function calling.
    Json,
}

/// How long a model should think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// As little as the model can.
    Low,
    /// As much as is usual.
    Medium,
    /// As much as the model can.
    High,
}

impl ReasoningEffort {
    /// Returns the name in the configuration and of most providers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Where and how to reach a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEndpoint {
    /// The wire format.
    pub protocol: ProviderProtocol,
    /// Base address, without the path of a single method: `https://api.openai.com/v1`,
    /// `https://api.anthropic.com/v1`, `https://generativelanguage.googleapis.com/v1beta`,
    /// `http://localhost:11434` for Ollama.
    pub base_url: String,
    /// The model's name at the provider.
    pub model: String,
    /// The API key, sent as the protocol requires. Local servers often need none.
    pub key: Option<Secret>,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Longest time from the request to the last byte of the answer.
    pub time_max: Duration,
    /// The sampling temperature; the provider's default if `None`.
    pub temperature: Option<f64>,
    /// Most tokens of one answer; the provider's default if `None`.
    pub output_tokens_max: Option<u32>,
    /// The context length in tokens. Only Ollama needs it: without it, Ollama cuts long
    /// conversations and does not report that.
    pub context_tokens: Option<u64>,
    /// How long to think; the provider's default if `None`.
    pub effort: Option<ReasoningEffort>,
    /// How the model calls tools.
    pub tool_calling: ToolCallingMode,
    /// The price of tokens; the model's known price if `None`.
    pub price: Option<TokenPrice>,
}

/// Why settings cannot be used. The messages never repeat the address because users paste keys into
/// the wrong field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointSettingsError {
    /// The base address is not a URL.
    #[error("the base address is not a URL: {problem}")]
    NotAUrl {
        /// What is wrong with the address.
        problem: String,
    },
    /// The scheme is neither http nor https.
    #[error("the base address is neither http nor https")]
    Scheme,
    /// The address contains a user name or a password.
    #[error("the base address holds a user name or a password")]
    UserInfo,
    /// The address has a query or a fragment, so no path can be appended.
    #[error("the base address has a query or a fragment")]
    Query,
    /// The model has no name.
    #[error("the model has no name")]
    Model,
    /// The key contains characters that a header cannot carry.
    #[error("the key holds characters that cannot be sent")]
    Key,
    /// The temperature is not a number from 0 up.
    #[error("the temperature is not a number from 0 up")]
    Temperature,
    /// The protocol has no embeddings.
    #[error("there are no embeddings in this protocol")]
    NoEmbeddings,
}

impl EndpointSettingsError {
    /// Returns how the user can fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAUrl { .. } | Self::Scheme | Self::Query => {
                "write it like https://api.openai.com/v1 or http://localhost:11434/v1"
            }
            Self::UserInfo => "give the key in its own field",
            Self::Model => "give the name that the provider lists, for example gpt-5-mini",
            Self::Key => "copy the key again, without line breaks or spaces",
            Self::Temperature => "most providers take 0 to 2",
            Self::NoEmbeddings => "name a model of a provider that has them, or none",
        }
    }
}

impl ModelEndpoint {
    /// Creates an endpoint with streaming, a timeout of ten minutes and the provider's defaults.
    pub fn new(
        protocol: ProviderProtocol,
        base_url: impl Into<String>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            protocol,
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            stream: true,
            time_max: TIME_MAX,
            temperature: None,
            output_tokens_max: None,
            context_tokens: None,
            effort: None,
            tool_calling: ToolCallingMode::Native,
            price: None,
        }
    }

    /// Returns the protocol and the model, the origin of a message.
    pub(crate) fn origin(&self) -> String {
        format!("{}/{}", self.protocol.as_str(), self.model.trim())
    }

    /// Returns true if the server is at one of these domains or their subdomains.
    pub(crate) fn is_at_domain(&self, domains: &[&str]) -> bool {
        let url = Url::parse(self.base_url.trim()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let is_below = |before: &str| before.is_empty() || before.ends_with('.');
        domains.iter().any(|domain| host.strip_suffix(domain).is_some_and(is_below))
    }

    /// Validates the settings and returns the URL of one of the model's methods.
    pub(crate) fn model_url(&self, path: &str) -> Result<Url, EndpointSettingsError> {
        if self.model.trim().is_empty() {
            return Err(EndpointSettingsError::Model);
        }
        self.server_url(path)
    }

    /// Validates the settings except the model, and returns the URL of a method.
    pub(crate) fn server_url(&self, path: &str) -> Result<Url, EndpointSettingsError> {
        if self.temperature.is_some_and(|t| !t.is_finite() || t < 0.0) {
            return Err(EndpointSettingsError::Temperature);
        }
        if self.key.as_ref().is_some_and(|key| !is_sendable_key(key.expose())) {
            return Err(EndpointSettingsError::Key);
        }
        let base = self.base_url.trim();
        let url = Url::parse(base)
            .map_err(|problem| EndpointSettingsError::NotAUrl { problem: problem.to_string() })?;
        check_url(&url)?;
        let address = format!("{}/{path}", base.trim_end_matches('/'));
        Url::parse(&address)
            .map_err(|problem| EndpointSettingsError::NotAUrl { problem: problem.to_string() })
    }
}

fn check_url(url: &Url) -> Result<(), EndpointSettingsError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EndpointSettingsError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointSettingsError::UserInfo);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(EndpointSettingsError::Query);
    }
    Ok(())
}

/// Rejects an empty key too, which only the server would refuse otherwise.
fn is_sendable_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base_url: &str) -> ModelEndpoint {
        ModelEndpoint::new(ProviderProtocol::OpenAiChat, base_url, "m")
    }

    #[test]
    fn a_base_address_leads_to_the_endpoint() {
        let rows = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
            (" http://localhost:11434/v1 ", "http://localhost:11434/v1/chat/completions"),
            ("http://[::1]:80", "http://[::1]/chat/completions"),
        ];
        for (base, want) in rows {
            assert_eq!(endpoint(base).model_url("chat/completions").unwrap().as_str(), want);
        }
    }

    #[test]
    fn a_domain_is_told_from_one_that_ends_alike() {
        let rows = [
            ("https://api.openai.com/v1", true),
            ("https://OpenAI.com", true),
            ("https://x.openai.azure.com/openai/v1", true),
            ("https://notopenai.com/v1", false),
            ("https://openai.com.example/v1", false),
            ("http://localhost:8080/v1", false),
            ("nonsense", false),
        ];
        for (base_url, want) in rows {
            assert_eq!(
                endpoint(base_url).is_at_domain(&["openai.com", "azure.com"]),
                want,
                "{base_url}"
            );
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_hint() {
        let with = |change: fn(&mut ModelEndpoint)| {
            let mut endpoint = endpoint("https://x");
            change(&mut endpoint);
            endpoint
        };
        let not_a_url =
            |problem: &str| EndpointSettingsError::NotAUrl { problem: problem.to_owned() };
        let rows = [
            (endpoint(""), not_a_url("relative URL without a base")),
            (endpoint("api.openai.com/v1"), not_a_url("relative URL without a base")),
            (endpoint("https://"), not_a_url("empty host")),
            (endpoint("file:///etc"), EndpointSettingsError::Scheme),
            (endpoint("https://u:p@x"), EndpointSettingsError::UserInfo),
            (endpoint("https://x?a=1"), EndpointSettingsError::Query),
            (endpoint("https://x#a"), EndpointSettingsError::Query),
            (with(|s| s.model = " ".to_owned()), EndpointSettingsError::Model),
            (with(|s| s.key = Some(Secret::new("a\nb"))), EndpointSettingsError::Key),
            (with(|s| s.key = Some(Secret::new(""))), EndpointSettingsError::Key),
            (with(|s| s.temperature = Some(f64::NAN)), EndpointSettingsError::Temperature),
            (with(|s| s.temperature = Some(-1.0)), EndpointSettingsError::Temperature),
        ];
        for (endpoint, want) in rows {
            let error = endpoint.model_url("x").unwrap_err();
            assert_eq!(error, want);
            assert!(!error.hint().is_empty());
        }
    }
}
