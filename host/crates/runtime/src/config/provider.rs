//! The providers of models: their protocols, addresses and environment variables. A plugin can act
//! as a provider.

use std::borrow::Cow;

use sallyport_contract::PluginName;
use sallyport_model::ProviderProtocol;
use sallyport_policy::source::nearest_match;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};

use super::{Env, env};

/// The prefix of a plugin's name where a provider is expected.
pub const PLUGIN_PREFIX: &str = "plugin:";

/// The name of the built-in matcher.
pub const OFFLINE: &str = "offline";

/// A provider of models, as configuration and flags name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its protocol; `None` for the built-in matcher.
    pub protocol: Option<ProviderProtocol>,
    /// Its default address.
    pub base_url: &'static str,
    /// The variables that may contain its key; the first one that is set counts.
    pub key_variables: &'static [&'static str],
    /// The variable that may contain another address.
    pub url_variable: Option<&'static str>,
    /// The variable that may name a model.
    pub model_variable: Option<&'static str>,
    /// Its default embedding model, if it has one.
    pub embedder: Option<&'static str>,
    /// The prefixes of its models' names. They only serve suggestions: a name alone never selects a
    /// provider.
    pub families: &'static [&'static str],
}

/// The provider or plugin that answers, as configuration and flags name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderChoice {
    /// A provider.
    Provider(ProviderDefinition),
    /// A plugin that acts as a provider.
    Plugin(PluginName),
}

/// A name that is neither a provider's nor a plugin's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownProvider {
    /// Description of the problem.
    pub message: String,
    /// The suggested name.
    pub hint: String,
}

impl ProviderChoice {
    /// Parses the name of a provider, or `plugin:NAME`.
    ///
    /// # Errors
    ///
    /// The name is neither.
    pub fn from_name(name: &str) -> Result<Self, UnknownProvider> {
        if let Some(plugin) = name.strip_prefix(PLUGIN_PREFIX) {
            let hint = match plugin.split_once('/') {
                Some(_) => format!("`--model {name}` names a plugin and its model"),
                None => format!("write {PLUGIN_PREFIX}NAME"),
            };
            let wrong = |error| UnknownProvider {
                message: format!("{name:?} is not the name of a plugin: {error}"),
                hint,
            };
            return plugin.parse().map(Self::Plugin).map_err(wrong);
        }
        ProviderDefinition::from_name(name).map(Self::Provider).ok_or_else(|| {
            let known = ALL.map(|provider| provider.name);
            let hint = match nearest_match(name, known) {
                Some(suggestion) => format!("did you mean {suggestion:?}?"),
                None => format!("the providers are {}, and {PLUGIN_PREFIX}NAME", known.join(", ")),
            };
            UnknownProvider { message: format!("there is no provider {name:?}"), hint }
        })
    }

    /// The name that configuration and flags use.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Provider(provider) => provider.name.into(),
            Self::Plugin(plugin) => format!("{PLUGIN_PREFIX}{plugin}").into(),
        }
    }
}

impl<'de> Deserialize<'de> for ProviderChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).map_err(|unknown| {
            D::Error::custom(format!("{{key}} cannot be {name:?}\n{}", unknown.hint))
        })
    }
}

/// The schema of the name of a provider.
pub(super) fn provider_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        { "enum": ALL.map(|provider| provider.name) },
        { "type": "string", "pattern": format!("^{PLUGIN_PREFIX}[a-z][a-z0-9_-]*$") },
    ] })
}

const OPENAI_URL: &str = "https://api.openai.com/v1";

const OPENAI_EMBEDDER: &str = "text-embedding-3-small";

/// The built-in matcher.
pub const OFFLINE_PROVIDER: ProviderDefinition = ProviderDefinition {
    name: OFFLINE,
    protocol: None,
    base_url: "",
    key_variables: &[],
    url_variable: None,
    model_variable: None,
    embedder: None,
    families: &[],
};

/// Every provider. The first match counts where several are possible.
pub const ALL: [ProviderDefinition; 11] = [
    ProviderDefinition {
        url_variable: Some(env::OPENAI_BASE_URL),
        embedder: Some(OPENAI_EMBEDDER),
        families: &["gpt-", "chatgpt-", "o1", "o3", "o4", "codex-"],
        ..ProviderDefinition::new(
            "openai",
            ProviderProtocol::OpenAiChat,
            OPENAI_URL,
            &[env::OPENAI_API_KEY],
        )
    },
    ProviderDefinition {
        url_variable: Some(env::OPENAI_BASE_URL),
        embedder: Some(OPENAI_EMBEDDER),
        ..ProviderDefinition::new(
            "openai-responses",
            ProviderProtocol::OpenAiResponses,
            OPENAI_URL,
            &[env::OPENAI_API_KEY],
        )
    },
    ProviderDefinition {
        families: &["claude"],
        ..ProviderDefinition::new(
            "anthropic",
            ProviderProtocol::Anthropic,
            "https://api.anthropic.com/v1",
            &[env::ANTHROPIC_API_KEY],
        )
    },
    ProviderDefinition {
        embedder: Some("gemini-embedding-001"),
        families: &["gemini", "gemma"],
        ..ProviderDefinition::new(
            "gemini",
            ProviderProtocol::Gemini,
            "https://generativelanguage.googleapis.com/v1beta",
            &[env::GEMINI_API_KEY, env::GOOGLE_API_KEY],
        )
    },
    ProviderDefinition {
        url_variable: Some(env::OLLAMA_BASE_URL),
        model_variable: Some(env::OLLAMA_MODEL),
        embedder: Some("nomic-embed-text"),
        families: &["llama", "qwen", "phi", "gemma", "gpt-oss"],
        ..ProviderDefinition::new("ollama", ProviderProtocol::Ollama, "http://localhost:11434", &[])
    },
    ProviderDefinition {
        embedder: Some("mistral-embed"),
        families: &["mistral", "ministral", "magistral", "codestral", "devstral", "pixtral"],
        ..ProviderDefinition::new(
            "mistral",
            ProviderProtocol::OpenAiChat,
            "https://api.mistral.ai/v1",
            &[env::MISTRAL_API_KEY],
        )
    },
    ProviderDefinition {
        families: &["deepseek"],
        ..ProviderDefinition::new(
            "deepseek",
            ProviderProtocol::OpenAiChat,
            "https://api.deepseek.com/v1",
            &[env::DEEPSEEK_API_KEY],
        )
    },
    ProviderDefinition::new(
        "openrouter",
        ProviderProtocol::OpenAiChat,
        "https://openrouter.ai/api/v1",
        &[env::OPENROUTER_API_KEY],
    ),
    ProviderDefinition::new(
        "llamacpp",
        ProviderProtocol::OpenAiChat,
        "http://localhost:8080/v1",
        &[],
    ),
    ProviderDefinition::new("vllm", ProviderProtocol::OpenAiChat, "http://localhost:8000/v1", &[]),
    OFFLINE_PROVIDER,
];

impl ProviderDefinition {
    const fn new(
        name: &'static str,
        protocol: ProviderProtocol,
        base_url: &'static str,
        key_variables: &'static [&'static str],
    ) -> Self {
        let protocol = Some(protocol);
        Self {
            name,
            protocol,
            base_url,
            key_variables,
            url_variable: None,
            model_variable: None,
            embedder: None,
            families: &[],
        }
    }

    /// The provider of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|provider| provider.name == name)
    }

    /// The variables of this provider that are set.
    pub fn variables_set(self, env: &Env) -> Vec<&'static str> {
        let all = self.key_variables.iter().copied().chain(self.url_variable);
        all.chain(self.model_variable).filter(|name| env.get(name).is_some()).collect()
    }

    /// True when the environment names a server of the user's own. Any name can then be one of its
    /// models.
    pub fn has_own_server(self, env: &Env) -> bool {
        let named = self.url_variable.and_then(|variable| env.get(variable));
        named.is_some_and(|url| !self.is_default_address(url))
    }

    /// True for the provider's default address.
    pub fn is_default_address(self, url: &str) -> bool {
        url.trim().trim_end_matches('/') == self.base_url.trim_end_matches('/')
    }

    /// True for a name that one of its models could have.
    pub fn can_serve_model(self, model: &str) -> bool {
        let model = model.to_ascii_lowercase();
        self.families.iter().any(|family| model.starts_with(family))
    }

    /// The key from the environment, and the variable that contains it.
    pub fn key_from_env(self, env: &Env) -> Option<(&'static str, &str)> {
        self.key_variables.iter().find_map(|name| Some((*name, env.get(name)?)))
    }
}

/// The variable for the key that the server at this address requires; `None` for a server that is
/// not known to require one.
pub fn key_variable_for_url(base_url: &str) -> Option<&'static str> {
    let first_key_variable =
        |provider: &ProviderDefinition| provider.key_variables.first().copied();
    let matching_providers =
        ALL.into_iter().filter(|provider| provider.is_default_address(base_url));
    matching_providers.filter_map(|provider| first_key_variable(&provider)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_one_name_and_an_address() {
        for (index, provider) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != provider.name));
            assert_eq!(provider.protocol.is_none(), provider.base_url.is_empty());
            assert_eq!(ProviderDefinition::from_name(provider.name), Some(*provider));
        }
    }
}
