//! Chooses the model, and records the reason for the choice.

mod embedding;
mod plugin;
mod stored_key;
mod suggestions;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use sallyport_contract::Secret;
use sallyport_model::{ModelEndpoint, ProviderProtocol, TokenPrice, ToolCallingMode, prices};

use super::{
    ConfigError, ConfigFlags, Env, FileConfig, SettingOrigin, env,
    file::ModelEntry,
    provider::{self, OFFLINE, PLUGIN_PREFIX, ProviderChoice, ProviderDefinition},
    setting_rows::ModelOrigins,
};

pub use plugin::PluginModelConfig;
pub use stored_key::{KEYRING_SERVICE, default_key_file};
pub(super) use stored_key::{key_folder, read_stored_key, stored_key_path, stored_key_source};

/// Longest timeout of an answer that can be set, in seconds: a day.
const TIMEOUT_S_MAX: u64 = 24 * 60 * 60;

/// The model to talk to.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelChoice {
    /// The built-in matcher.
    Offline {
        /// True when it was requested explicitly, so that no notice is needed.
        is_explicit: bool,
    },
    /// A model at an address.
    Endpoint(Box<ModelEndpoint>),
    /// A plugin that acts as a model.
    Plugin(Box<PluginModelConfig>),
}

/// The model that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenModel {
    /// The name under which it was chosen: a table's, or `provider/model`.
    pub name: String,
    /// The model itself.
    pub choice: ModelChoice,
    /// The provider that serves it.
    pub provider: ProviderChoice,
    /// Size of its context in tokens, where it is set.
    pub context_tokens: Option<u64>,
    /// The origins of its parts.
    pub origins: ModelOrigins,
    /// Why its stored key could not be read.
    pub key_problem: Option<String>,
    /// The reason for the choice, in human-readable form.
    pub reason: String,
}

/// Everything that a model can be chosen from.
#[derive(Debug, Clone)]
pub struct ModelSources {
    /// `[model.NAME]`.
    pub entries: BTreeMap<String, ModelEntry>,
    prices: Vec<(String, TokenPrice)>,
    env: Env,
    provider: Option<ProviderChoice>,
    stream: bool,
    time_max: Option<Duration>,
}

impl ModelSources {
    pub(super) fn new(
        flags: &ConfigFlags,
        env: &Env,
        file: &FileConfig,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            entries: file.model.iter().map(|(name, e)| (name.0.clone(), e.clone())).collect(),
            prices: file.price.iter().map(|(glob, e)| (glob.0.clone(), e.token_price())).collect(),
            env: env.clone(),
            provider: flags.provider.as_deref().map(parse_provider).transpose()?,
            stream: !flags.no_stream,
            time_max: read_llm_timeout(env)?,
        })
    }

    /// Chooses the model: from the flags, then the environment, then the file. Without any of
    /// these, the only model that is set up is used, and otherwise `offline`.
    pub(super) fn choose_model(
        &self,
        flags: &ConfigFlags,
        default: Option<(&str, SettingOrigin)>,
    ) -> Result<ChosenModel, ConfigError> {
        let flag = flags.model.as_deref().map(|name| (name, SettingOrigin::Flag("--model")));
        let variable =
            self.env.get(env::MODEL).map(|name| (name, SettingOrigin::Variable(env::MODEL)));
        match &self.provider {
            Some(ProviderChoice::Provider(provider)) => {
                return self.choose_from_provider(*provider, flag.or(variable));
            }
            Some(provider_choice @ ProviderChoice::Plugin(_)) => {
                let chosen = self.model_at_provider(provider_choice, flag.map(|(name, _)| name))?;
                return Ok(chosen.with_reason("the flag --provider names it"));
            }
            None => {}
        }
        if let Some((name, origin)) = flag.or(variable) {
            return Ok(self.resolve_model_name(name)?.with_reason(format!("{origin} names it")));
        }
        if let Some((name, origin)) = default {
            let known = self.entries.contains_key(name) || name == OFFLINE;
            let chosen = if known {
                self.resolve_model_name(name)
            } else {
                Err(self.unknown_table_error(name))
            };
            return Ok(chosen?.with_reason(format!("default_model of {origin} names it")));
        }
        self.choose_only_model()
    }

    /// Chooses a model for `--provider`: the name is one of the provider's models, never a table's.
    fn choose_from_provider(
        &self,
        provider: ProviderDefinition,
        named: Option<(&str, SettingOrigin)>,
    ) -> Result<ChosenModel, ConfigError> {
        let own = provider.model_variable;
        let own = own.and_then(|name| Some((self.env.get(name)?, SettingOrigin::Variable(name))));
        match named.or(own) {
            Some((name, origin)) => {
                let provider_choice = ProviderChoice::Provider(provider);
                Ok(self
                    .model_at_provider(&provider_choice, Some(name))?
                    .with_reason(format!("{origin} names it")))
            }
            None if provider.name == OFFLINE => {
                Ok(offline_model(true).with_reason("the flag --provider names it"))
            }
            None => Err(ConfigError::Model {
                message: format!("--provider {} needs a model", provider.name),
                hint: "name it with --model NAME".to_owned(),
            }),
        }
    }

    /// Falls back to the only model that is set up. A key or an address alone names no model,
    /// because the program must not guess which model the user pays for.
    fn choose_only_model(&self) -> Result<ChosenModel, ConfigError> {
        for provider in provider::ALL {
            let variable = provider.model_variable;
            if let Some((variable, name)) = variable.and_then(|v| Some((v, self.env.get(v)?))) {
                let reason =
                    format!("the variable {variable} names it, and nothing else is chosen");
                return Ok(self
                    .model_at_provider(&ProviderChoice::Provider(provider), Some(name))?
                    .with_reason(reason));
            }
        }
        match self.entries.iter().next() {
            Some((name, entry)) if self.entries.len() == 1 => {
                let reason = format!("[model.{name}] is the only model of the file");
                Ok(self.model_from_entry(name, entry)?.with_reason(reason))
            }
            _ => Ok(offline_model(false).with_reason("nothing else is chosen")),
        }
    }

    /// The model that a name means: a table's, `offline`, `provider/model`, `plugin:NAME` or
    /// `plugin:NAME/model`. Any other name is valid where the environment names a server of the
    /// user's own.
    ///
    /// # Errors
    ///
    /// The table is incomplete, or the name means no model: a conversation is sent only to a model
    /// that was named.
    pub fn resolve_model_name(&self, name: &str) -> Result<ChosenModel, ConfigError> {
        if let Some(entry) = self.entries.get(name) {
            return self.model_from_entry(name, entry);
        }
        if name == OFFLINE {
            return Ok(offline_model(true));
        }
        let (first, rest) = name.split_once('/').map_or((name, None), |(a, b)| (a, Some(b)));
        if first.starts_with(PLUGIN_PREFIX) {
            return self.model_at_provider(&parse_provider(first)?, rest);
        }
        match rest.and_then(|rest| Some((ProviderDefinition::from_name(first)?, rest))) {
            Some((provider, model)) => {
                self.model_at_provider(&ProviderChoice::Provider(provider), Some(model))
            }
            None => {
                let own = provider::ALL.into_iter().find(|one| one.has_own_server(&self.env));
                match own {
                    Some(provider) => {
                        self.model_at_provider(&ProviderChoice::Provider(provider), Some(name))
                    }
                    None => Err(self.unknown_model_error(name)),
                }
            }
        }
    }

    /// Every server key in a variable or in the configuration itself, with the name of its source.
    pub fn server_keys(&self) -> impl Iterator<Item = (String, Secret)> {
        let variables = provider::ALL.into_iter().flat_map(|provider| provider.key_variables);
        let set = variables.filter_map(|name| Some(((*name).to_owned(), self.env.get(name)?)));
        let written = self
            .entries
            .iter()
            .filter_map(|(name, entry)| Some((format!("model.{name}.key"), entry.key.as_deref()?)));
        set.chain(written).map(|(name, key)| (name, Secret::new(key)))
    }

    /// The server of a provider, for requests that do not concern one of its models.
    ///
    /// # Errors
    ///
    /// The provider is unknown, or it has no server.
    pub fn server_endpoint(&self, provider: &str) -> Result<ModelEndpoint, ConfigError> {
        let provider_choice = parse_provider(provider)?;
        let served = match &provider_choice {
            ProviderChoice::Provider(provider) => {
                provider.protocol.map(|protocol| (*provider, protocol))
            }
            ProviderChoice::Plugin(_) => None,
        };
        let (provider, protocol) = served.ok_or_else(|| ConfigError::Model {
            message: format!("{} has no server", provider_choice.name()),
            hint: "name another provider".to_owned(),
        })?;
        let entry = ModelEntry::from_provider(provider_choice);
        let key = self.server_key(&entry, &provider).map(|(key, _)| key);
        Ok(ModelEndpoint {
            key,
            ..ModelEndpoint::new(protocol, self.server_address(&entry, &provider).0, "")
        })
    }

    /// A model of `asked`, completed from the environment. Without a name, a plugin chooses its
    /// model itself.
    fn model_at_provider(
        &self,
        provider_choice: &ProviderChoice,
        model: Option<&str>,
    ) -> Result<ChosenModel, ConfigError> {
        if model.is_some_and(|model| model.trim().is_empty()) {
            return Err(ConfigError::Model {
                message: "the model that is asked for has no name".to_owned(),
                hint: format!("write {}/NAME", provider_choice.name()),
            });
        }
        let name = match model {
            Some(model) => format!("{}/{model}", provider_choice.name()),
            None => provider_choice.name().into_owned(),
        };
        let model = model.map(str::to_owned);
        self.model_from_entry(
            &name,
            &ModelEntry { model, ..ModelEntry::from_provider(provider_choice.clone()) },
        )
    }

    fn model_from_entry(&self, name: &str, entry: &ModelEntry) -> Result<ChosenModel, ConfigError> {
        match &entry.provider {
            ProviderChoice::Plugin(plugin) => Ok(self.model_from_plugin(name, entry, plugin)),
            ProviderChoice::Provider(provider) => match provider.protocol {
                Some(protocol) => self.model_from_server(name, entry, provider, protocol),
                None => Ok(offline_model(true)),
            },
        }
    }

    fn model_from_server(
        &self,
        name: &str,
        entry: &ModelEntry,
        provider: &ProviderDefinition,
        protocol: ProviderProtocol,
    ) -> Result<ChosenModel, ConfigError> {
        let model = entry.model.as_deref().filter(|model| !model.is_empty());
        let model = model.ok_or_else(|| ConfigError::Model {
            message: format!("[model.{name}] does not say which model"),
            hint: "add model = \"…\" to it".to_owned(),
        })?;
        let address = self.server_address(entry, provider);
        // In place of a stored key, that of the environment could be another account's.
        let (key, key_problem) = match entry.read_stored_key(name, &self.env) {
            Some(Ok(key)) => (Some((key, entry.origin)), None),
            Some(Err(problem)) => (None, Some(problem)),
            None => (self.server_key(entry, provider), None),
        };
        let (key, key_origin) = key.unzip();
        let time = self.answer_time_max(entry);
        let defaults = ModelEndpoint::new(protocol, address.0, model);
        let mut endpoint = ModelEndpoint {
            key,
            stream: self.stream && entry.stream,
            time_max: time.map_or(defaults.time_max, |(time, _)| time),
            temperature: entry.temperature.map(|amount| amount.0),
            output_tokens_max: entry.max_output_tokens.map(|tokens| tokens.0),
            context_tokens: entry.context_tokens.map(|tokens| tokens.0),
            effort: entry.reasoning,
            tool_calling: entry.tools,
            ..defaults
        };
        endpoint.price = prices::of(&endpoint, &self.prices);
        let choice = ModelChoice::Endpoint(Box::new(endpoint));
        Ok(ChosenModel {
            name: name.to_owned(),
            choice,
            provider: entry.provider.clone(),
            context_tokens: entry.context_tokens.map(|tokens| tokens.0),
            origins: ModelOrigins {
                address: address.1,
                key: key_origin,
                time: time.map_or(SettingOrigin::Default, |(_, origin)| origin),
            },
            key_problem,
            reason: String::new(),
        })
    }

    fn server_address<'a>(
        &'a self,
        entry: &'a ModelEntry,
        provider: &ProviderDefinition,
    ) -> (&'a str, SettingOrigin) {
        let ProviderDefinition { base_url, url_variable, .. } = *provider;
        let written = entry.base_url.as_deref().map(|url| (url, entry.origin));
        let variable =
            url_variable.and_then(|v| Some((self.env.get(v)?, SettingOrigin::Variable(v))));
        written.or(variable).unwrap_or((base_url, SettingOrigin::Default))
    }

    /// Returns the key and its origin. A key from the environment is sent only to the provider's
    /// own address and to the address from the environment, not to another one that the file names.
    fn server_key(
        &self,
        entry: &ModelEntry,
        provider: &ProviderDefinition,
    ) -> Option<(Secret, SettingOrigin)> {
        let own_address =
            entry.base_url.as_deref().is_none_or(|url| provider.is_default_address(url));
        let written = entry.key.as_deref().map(|key| (key, entry.origin));
        let variable = provider.key_from_env(&self.env).filter(|_| own_address);
        let (key, origin) =
            written.or(variable.map(|(name, key)| (key, SettingOrigin::Variable(name))))?;
        Some((Secret::new(key), origin))
    }

    fn answer_time_max(&self, entry: &ModelEntry) -> Option<(Duration, SettingOrigin)> {
        let variable = self.time_max.map(|time| (time, SettingOrigin::Variable(env::LLM_TIMEOUT)));
        variable.or(entry.time_max.map(|time| (time.0, entry.origin)))
    }

    /// Advice on what to add. It is specific where something is set up without a model, and general
    /// otherwise.
    pub fn setup_advice(&self) -> String {
        let set = provider::ALL.iter().find_map(|provider| {
            provider.variables_set(&self.env).first().map(|variable| (provider, *variable))
        });
        let tables: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        match (set, tables.as_slice()) {
            (_, [first, ..]) => {
                format!("name a model with --model, such as {first}, or set default_model")
            }
            (Some((provider, variable)), []) => format!(
                "{variable} is set, but no model is named: add --model {}/NAME, or set {}",
                provider.name,
                env::MODEL
            ),
            (None, []) => format!(
                "`sallyport setup` sets one up; or name it with --model PROVIDER/NAME and set the \
                 provider's key, such as {}",
                env::OPENAI_API_KEY
            ),
        }
    }
}

impl ChosenModel {
    /// The key that is sent to its server, with its name.
    pub(crate) fn server_key(&self) -> Option<(String, Secret)> {
        let ModelChoice::Endpoint(endpoint) = &self.choice else { return None };
        Some((format!("model.{}.key", self.name), endpoint.key.clone()?))
    }

    /// Advice for a key that is refused or missing.
    pub fn key_advice(&self) -> String {
        let entry = "or `key` in its [model.NAME] table";
        let provider = match &self.provider {
            ProviderChoice::Provider(provider) => provider,
            ProviderChoice::Plugin(plugin) => {
                return format!("check the secret that the policy gives to {plugin}");
            }
        };
        match (self.origins.key, provider.key_variables.first()) {
            (Some(origin), _) => format!("check the key; it comes from {origin}"),
            (None, Some(variable)) => format!("set {variable}, {entry}"),
            (None, None) => "give it a `key` in its [model.NAME] table".to_owned(),
        }
    }

    /// Advice for an address that cannot be reached.
    pub fn address_advice(&self) -> String {
        if let ProviderChoice::Plugin(plugin) = &self.provider {
            return format!("check the network, and the address that {plugin} is set up with");
        }
        let origin = self.origins.address;
        format!("check that the server runs, and its address, which comes from {origin}")
    }

    fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

impl ModelEntry {
    /// A table that sets only the provider.
    pub(super) fn from_provider(provider: ProviderChoice) -> Self {
        Self {
            provider,
            origin: SettingOrigin::Default,
            model: None,
            base_url: None,
            key: None,
            key_file: None,
            key_keyring: None,
            stream: true,
            temperature: None,
            max_output_tokens: None,
            reasoning: None,
            tools: ToolCallingMode::Native,
            time_max: None,
            context_tokens: None,
        }
    }
}

fn offline_model(is_explicit: bool) -> ChosenModel {
    ChosenModel {
        name: OFFLINE.to_owned(),
        choice: ModelChoice::Offline { is_explicit },
        provider: ProviderChoice::Provider(provider::OFFLINE_PROVIDER),
        context_tokens: None,
        origins: ModelOrigins::NONE,
        key_problem: None,
        reason: String::new(),
    }
}

fn parse_provider(name: &str) -> Result<ProviderChoice, ConfigError> {
    ProviderChoice::from_name(name).map_err(|unknown_provider| ConfigError::Model {
        message: unknown_provider.message,
        hint: unknown_provider.hint,
    })
}

/// Reads `LLM_TIMEOUT`, which other programs use too.
fn read_llm_timeout(env: &Env) -> Result<Option<Duration>, ConfigError> {
    let Some(text) = env.get(env::LLM_TIMEOUT) else { return Ok(None) };
    let seconds = text.trim().parse::<u64>().ok().filter(|s| (1..=TIMEOUT_S_MAX).contains(s));
    seconds.map(|s| Some(Duration::from_secs(s))).ok_or_else(|| ConfigError::Model {
        message: format!("{} is {text:?}, which is not a number of seconds", env::LLM_TIMEOUT),
        hint: format!("set it to a whole number from 1 to {TIMEOUT_S_MAX}"),
    })
}
