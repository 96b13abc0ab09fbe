//! The providers that a model can be asked at: what each speaks, where it is, and which variables
//! of the environment are about it. A plugin can stand in the place of one.

use std::borrow::Cow;

use sallyport_contract::PluginName;
use sallyport_model::Protocol;
use sallyport_policy::source::nearest;

use super::{Env, env};

/// What stands before the name of a plugin where a provider is named.
pub const PLUGIN_PREFIX: &str = "plugin:";

/// The name of the built-in matcher.
pub const OFFLINE: &str = "offline";

/// One provider of models, as configuration and flags name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// The word that names it.
    pub name: &'static str,
    /// What it speaks; the built-in matcher speaks nothing.
    pub protocol: Option<Protocol>,
    /// Its own address.
    pub base_url: &'static str,
    /// The variables that may hold its key; the first one that is set counts.
    pub key_variables: &'static [&'static str],
    /// The variable that may hold another address.
    pub url_variable: Option<&'static str>,
    /// The variable that may name a model.
    pub model_variable: Option<&'static str>,
    /// Its usual model for vectors of texts, if it has one.
    pub embedder: Option<&'static str>,
}

/// Who is asked for answers, as configuration and flags name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A provider.
    Provider(Provider),
    /// A plugin that stands for one.
    Plugin(PluginName),
}

/// A name that stands for nobody who can be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NobodyAsked {
    /// What is wrong with it.
    pub message: String,
    /// What could have been meant.
    pub hint: String,
}

impl Asked {
    /// Who goes by a name: a provider's, or `plugin:NAME`.
    ///
    /// # Errors
    ///
    /// Nobody does.
    pub fn named(name: &str) -> Result<Self, NobodyAsked> {
        if let Some(plugin) = name.strip_prefix(PLUGIN_PREFIX) {
            let hint = match plugin.split_once('/') {
                Some(_) => format!("`--model {name}` names a plugin and its model"),
                None => format!("write {PLUGIN_PREFIX}NAME"),
            };
            let wrong =
                |error| NobodyAsked { message: format!("{name:?} names no plugin: {error}"), hint };
            return plugin.parse().map(Self::Plugin).map_err(wrong);
        }
        Provider::named(name).map(Self::Provider).ok_or_else(|| {
            let known = ALL.map(|provider| provider.name);
            let hint = match nearest(name, known) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known are {}, and {PLUGIN_PREFIX}NAME", known.join(", ")),
            };
            NobodyAsked { message: format!("there is no provider {name:?}"), hint }
        })
    }

    /// The word that names it.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Provider(provider) => provider.name.into(),
            Self::Plugin(plugin) => format!("{PLUGIN_PREFIX}{plugin}").into(),
        }
    }
}

const OPENAI_URL: &str = "https://api.openai.com/v1";

const OPENAI_EMBEDDER: &str = "text-embedding-3-small";

/// The built-in matcher.
pub const BUILT_IN: Provider = Provider {
    name: OFFLINE,
    protocol: None,
    base_url: "",
    key_variables: &[],
    url_variable: None,
    model_variable: None,
    embedder: None,
};

/// Every provider. Where several could be meant, the first one counts.
pub const ALL: [Provider; 11] = [
    Provider {
        url_variable: Some(env::OPENAI_BASE_URL),
        embedder: Some(OPENAI_EMBEDDER),
        ..Provider::new("openai", Protocol::OpenAiChat, OPENAI_URL, &[env::OPENAI_API_KEY])
    },
    Provider {
        url_variable: Some(env::OPENAI_BASE_URL),
        embedder: Some(OPENAI_EMBEDDER),
        ..Provider::new(
            "openai-responses",
            Protocol::OpenAiResponses,
            OPENAI_URL,
            &[env::OPENAI_API_KEY],
        )
    },
    Provider::new(
        "anthropic",
        Protocol::Anthropic,
        "https://api.anthropic.com/v1",
        &[env::ANTHROPIC_API_KEY],
    ),
    Provider {
        embedder: Some("gemini-embedding-001"),
        ..Provider::new(
            "gemini",
            Protocol::Gemini,
            "https://generativelanguage.googleapis.com/v1beta",
            &[env::GEMINI_API_KEY, env::GOOGLE_API_KEY],
        )
    },
    Provider {
        url_variable: Some(env::OLLAMA_BASE_URL),
        model_variable: Some(env::OLLAMA_MODEL),
        embedder: Some("nomic-embed-text"),
        ..Provider::new("ollama", Protocol::Ollama, "http://localhost:11434", &[])
    },
    Provider {
        embedder: Some("mistral-embed"),
        ..Provider::new(
            "mistral",
            Protocol::OpenAiChat,
            "https://api.mistral.ai/v1",
            &[env::MISTRAL_API_KEY],
        )
    },
    Provider::new(
        "deepseek",
        Protocol::OpenAiChat,
        "https://api.deepseek.com/v1",
        &[env::DEEPSEEK_API_KEY],
    ),
    Provider::new(
        "openrouter",
        Protocol::OpenAiChat,
        "https://openrouter.ai/api/v1",
        &[env::OPENROUTER_API_KEY],
    ),
    Provider::new("llamacpp", Protocol::OpenAiChat, "http://localhost:8080/v1", &[]),
    Provider::new("vllm", Protocol::OpenAiChat, "http://localhost:8000/v1", &[]),
    BUILT_IN,
];

impl Provider {
    const fn new(
        name: &'static str,
        protocol: Protocol,
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
        }
    }

    /// The provider of that name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|provider| provider.name == name)
    }

    /// The variables that are about this provider and are set.
    pub fn variables_set(self, env: &Env) -> Vec<&'static str> {
        let all = self.key_variables.iter().copied().chain(self.url_variable);
        all.chain(self.model_variable).filter(|name| env.get(name).is_some()).collect()
    }

    /// The key that the environment has for it, and the variable that holds it.
    pub fn key(self, env: &Env) -> Option<(&'static str, &str)> {
        self.key_variables.iter().find_map(|name| Some((*name, env.get(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_one_name_and_an_address() {
        for (index, provider) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != provider.name));
            assert_eq!(provider.protocol.is_none(), provider.base_url.is_empty());
            assert_eq!(Provider::named(provider.name), Some(*provider));
        }
    }
}
