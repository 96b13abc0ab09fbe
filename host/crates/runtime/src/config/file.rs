//! `sallyport.toml`, the configuration file.
//!
//! ```toml
//! plugin_dir = "~/tools"
//! default_model = "work"
//!
//! [model.work]
//! provider = "openai"
//! model = "gpt-5-mini"
//! base_url = "https://api.openai.com/v1"
//! key = "${OPENAI_API_KEY}"
//!
//! [price."gpt-5-*"]
//! input = 0.25
//! output = 2.0
//!
//! [chat]
//! memory = "sliding-window"
//! memory_tokens = 24000
//!
//! [budget]
//! calls = 32
//! session_cost = 1.50
//!
//! [sessions]
//! keep = "90d"
//!
//! [internal]
//! reminder = false
//!
//! [browser]
//! command = "firefox"
//!
//! [packages]
//! index = "https://packages.example.com/simple/"
//!
//! [compile]
//! wait = "10s"
//! cpu_time = "60s"
//!
//! [settings.weather]
//! forecast_url = "http://127.0.0.1:8080"
//! ```

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use sallyport_contract::PluginName;
use sallyport_model::{ReasoningEffort, TokenPrice, ToolCallingMode};
use sallyport_policy::{
    SourceError,
    document::{TomlDocument, TomlItem, TomlSection},
};
use serde_json::{Map, Value};

use super::{
    CompileSettings, Env, SettingOrigin,
    internal::InternalKeys,
    provider::ProviderChoice,
    sections::{BudgetKeys, ChatKeys, SessionKeys, read_amount, read_duration, read_token_count},
    service_keys::{BrowserKeys, PackageKeys},
};

/// The contents of the file, before defaults apply.
#[derive(Debug, Default)]
pub struct FileConfig {
    /// `plugin_dir`: one folder or a list.
    pub plugin_dirs: Vec<PathBuf>,
    /// `default_model`: a `[model.NAME]` table, or `offline`.
    pub default_model: Option<String>,
    /// `[model.NAME]`.
    pub models: BTreeMap<String, ModelEntry>,
    /// `[embedding]`.
    pub embedding: Option<ModelEntry>,
    /// `[price."GLOB"]`.
    pub prices: Vec<(String, TokenPrice)>,
    /// `[chat]`.
    pub chat: ChatKeys,
    /// `[budget]`.
    pub budget: BudgetKeys,
    /// `[sessions]`.
    pub sessions: SessionKeys,
    /// `[internal]`.
    pub internal: InternalKeys,
    /// `[browser]`.
    pub browser: BrowserKeys,
    /// `[packages]`.
    pub packages: PackageKeys,
    /// `[compile]`.
    pub compile: CompileSettings,
    /// `[settings.PLUGIN]`.
    pub settings: BTreeMap<PluginName, Map<String, Value>>,
}

/// One `[model.NAME]` table.
#[derive(Clone)]
pub struct ModelEntry {
    /// The provider of the model.
    pub provider: ProviderChoice,
    /// The file that contains the table.
    pub origin: SettingOrigin,
    /// The model's name at the provider.
    pub model: Option<String>,
    /// The address of the endpoint.
    pub base_url: Option<String>,
    /// The key, with `${VAR}` already replaced.
    pub key: Option<String>,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// How much effort the model spends on reasoning.
    pub reasoning: Option<ReasoningEffort>,
    /// How tools are described to the model.
    pub tools: ToolCallingMode,
    /// Timeout of one answer.
    pub time_max: Option<Duration>,
    /// Size of the model's context in tokens.
    pub context_tokens: Option<u64>,
}

impl std::fmt::Debug for ModelEntry {
    /// Leaves out the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { provider, model, .. } = self;
        f.debug_struct("ModelEntry")
            .field("provider", &provider.name())
            .field("model", model)
            .finish()
    }
}

/// The names of [`ReasoningEffort`] in the file.
pub(super) const EFFORTS: [(&str, ReasoningEffort); 3] = [
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
];

/// The names of [`ToolCallingMode`] in the file.
pub(super) const TOOL_CALLINGS: [(&str, ToolCallingMode); 2] =
    [("native", ToolCallingMode::Native), ("json", ToolCallingMode::Json)];

impl FileConfig {
    /// Parses the file and replaces `${VAR}` from the environment.
    ///
    /// # Errors
    ///
    /// The first mistake, with its position.
    pub fn parse(file: &str, text: &str, env: &Env) -> Result<Self, SourceError> {
        TomlDocument::read_with(file, text, |root| {
            let folder = |item: TomlItem<'_>| {
                expand_variables(item, env).map(|text| expand_home(&text, env))
            };
            let plugin_dirs = root.read_optional("plugin_dir", |item| match item.is_list() {
                true => item.read_list(folder),
                false => folder(item).map(|one| vec![one]),
            })?;
            let default_model =
                root.read_optional("default_model", TomlItem::read_nonblank_string)?;
            let models = root.read_named_items("model", |name, entry| {
                Ok((
                    name.read_nonblank_string()?,
                    entry.read_section(|table| read_model_entry(table, env))?,
                ))
            })?;
            let embedding = root.read_optional("embedding", |item| {
                item.read_section(|table| read_embedding(table, env))
            })?;
            let prices = root.read_named_items("price", |name, entry| {
                Ok((read_model_glob(name)?, entry.read_section(read_price)?))
            })?;
            let chat =
                root.read_optional("chat", |item| item.read_section(ChatKeys::read_section))?;
            let budget =
                root.read_optional("budget", |item| item.read_section(BudgetKeys::read_section))?;
            let sessions = root
                .read_optional("sessions", |item| item.read_section(SessionKeys::read_section))?;
            let internal = root
                .read_optional("internal", |item| item.read_section(InternalKeys::read_section))?;
            let browser =
                root.read_optional("browser", |item| item.read_section(BrowserKeys::read_section))?;
            let packages = root.read_optional("packages", |item| {
                item.read_section(|table| PackageKeys::read_section(table, env))
            })?;
            let compile = root.read_optional("compile", |item| {
                item.read_section(CompileSettings::read_section)
            })?;
            let settings = root.read_named_items("settings", |name, entry| {
                Ok((name.read_parsed::<PluginName>()?, read_plugin_settings(entry, env)?))
            })?;
            Ok(Self {
                plugin_dirs: plugin_dirs.unwrap_or_default(),
                default_model,
                models: models.into_iter().collect(),
                embedding,
                prices,
                chat: chat.unwrap_or_default(),
                budget: budget.unwrap_or_default(),
                sessions: sessions.unwrap_or_default(),
                internal: internal.unwrap_or_default(),
                browser: browser.unwrap_or_default(),
                packages: packages.unwrap_or_default(),
                compile: compile.unwrap_or_default(),
                settings: settings.into_iter().collect(),
            })
        })
    }

    /// Merges this file over another one. Its keys and named tables win.
    pub(super) fn merge_over(mut self, mut base: Self) -> Self {
        let has_no_plugin_dirs = self.plugin_dirs.is_empty();
        base.models.append(&mut self.models);
        base.settings.append(&mut self.settings);
        // Of equal globs, the first one counts.
        self.prices.append(&mut base.prices);
        Self {
            plugin_dirs: if has_no_plugin_dirs { base.plugin_dirs } else { self.plugin_dirs },
            default_model: self.default_model.or(base.default_model),
            models: base.models,
            embedding: self.embedding.or(base.embedding),
            prices: self.prices,
            chat: self.chat.merge_over(base.chat),
            budget: self.budget.merge_over(base.budget),
            sessions: self.sessions.merge_over(base.sessions),
            internal: self.internal.merge_over(base.internal),
            browser: self.browser.merge_over(base.browser),
            packages: self.packages.merge_over(base.packages),
            compile: self.compile.merge_over(base.compile),
            settings: base.settings,
        }
    }
}

fn read_model_entry(table: &mut TomlSection<'_>, env: &Env) -> Result<ModelEntry, SourceError> {
    let text = |item: TomlItem<'_>| expand_variables(item, env);
    let provider = table.read_required("provider", read_provider)?;
    Ok(ModelEntry {
        origin: SettingOrigin::File,
        model: table.read_optional("model", text)?,
        base_url: table.read_optional("base_url", |item| {
            check_server_setting(item, &provider).and_then(text)
        })?,
        key: table
            .read_optional("key", |item| check_server_setting(item, &provider).and_then(text))?,
        stream: table.read_optional("stream", TomlItem::read_bool)?.unwrap_or(true),
        temperature: table.read_optional("temperature", read_amount)?,
        max_output_tokens: table
            .read_optional("max_output_tokens", |item| item.read_count(1..=u32::MAX))?,
        reasoning: table.read_optional("reasoning", |item| {
            check_server_setting(item, &provider)?.read_choice(&EFFORTS)
        })?,
        tools: table
            .read_optional("tools", |item| item.read_choice(&TOOL_CALLINGS))?
            .unwrap_or(ToolCallingMode::Native),
        time_max: table.read_optional("time_max", read_duration)?,
        context_tokens: table.read_optional("context_tokens", read_token_count)?,
        provider,
    })
}

/// Reads `[embedding]`: a `[model.NAME]` table with fewer keys.
fn read_embedding(table: &mut TomlSection<'_>, env: &Env) -> Result<ModelEntry, SourceError> {
    let place = table.place();
    let text = |item: TomlItem<'_>| expand_variables(item, env);
    let provider = table.read_required("provider", read_provider)?;
    let can_embed =
        matches!(&provider, ProviderChoice::Provider(known) if known.protocol.is_some());
    if !can_embed {
        let message = format!("{} has no embedding models", provider.name());
        return Err(place.into_error(message).with_hint("choose a provider with embedding models"));
    }
    Ok(ModelEntry {
        model: table.read_optional("model", text)?,
        base_url: table.read_optional("base_url", text)?,
        key: table.read_optional("key", text)?,
        origin: SettingOrigin::File,
        ..ModelEntry::from_provider(provider)
    })
}

/// Reads the name of a provider.
fn read_provider(item: TomlItem<'_>) -> Result<ProviderChoice, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let name = item.read_string()?;
    ProviderChoice::from_name(&name).map_err(|unknown_provider| {
        place.into_error(format!("{label} cannot be {name:?}")).with_hint(unknown_provider.hint)
    })
}

/// Accepts a value that concerns a server. A plugin gets its settings from `[settings.PLUGIN]`
/// instead.
fn check_server_setting<'d>(
    item: TomlItem<'d>,
    choice: &ProviderChoice,
) -> Result<TomlItem<'d>, SourceError> {
    let ProviderChoice::Plugin(plugin) = choice else { return Ok(item) };
    let message = format!("{} says nothing to a plugin", item.label());
    let hint = format!("put settings for {plugin} under [settings.{plugin}]");
    Err(item.place().into_error(message).with_hint(hint))
}

/// Reads a glob of model names. The special characters of other globs would match nothing here, so
/// they are refused.
fn read_model_glob(name: TomlItem<'_>) -> Result<String, SourceError> {
    let place = name.place();
    let text = name.read_nonblank_string()?;
    match text.contains(['?', '[', ']', '{', '}']) {
        true => {
            let message = format!("{text:?} is not a valid glob: only * is special");
            Err(place.into_error(message))
        }
        false => Ok(text),
    }
}

/// Reads a price. Tokens read from a cache or written to one cost as much as other input, unless
/// the file sets their price.
fn read_price(table: &mut TomlSection<'_>) -> Result<TokenPrice, SourceError> {
    let input = table.read_required("input", read_amount)?;
    Ok(TokenPrice {
        input,
        output: table.read_required("output", read_amount)?,
        cached_input: table.read_optional("cached_input", read_amount)?.unwrap_or(input),
        cache_write: table.read_optional("cache_write", read_amount)?.unwrap_or(input),
    })
}

fn read_plugin_settings(entry: TomlItem<'_>, env: &Env) -> Result<Map<String, Value>, SourceError> {
    let pairs = entry.read_named_items(|name, value| {
        let name = name.read_string()?;
        let value = if value.is_string() {
            Value::String(expand_variables(value, env)?)
        } else {
            value.read_json()?
        };
        Ok((name, value))
    })?;
    Ok(Map::from_iter(pairs))
}

/// Replaces every `${VAR}` in a text. An unset variable is an error, because an empty key or
/// address would fail later with a less helpful message.
pub(super) fn expand_variables(item: TomlItem<'_>, env: &Env) -> Result<String, SourceError> {
    let place = item.place();
    let text = item.read_string()?;
    let mut expanded = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + length];
        let value = env.get(name).ok_or_else(|| {
            place
                .clone()
                .into_error(format!("the environment variable {name:?} is not set"))
                .with_hint("set it, or write the value itself")
        })?;
        expanded.push_str(&rest[..start]);
        expanded.push_str(value);
        rest = &rest[start + length + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn expand_home(text: &str, env: &Env) -> PathBuf {
    match (text.strip_prefix("~/"), env.home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FileConfig, SourceError> {
        let env = Env::from_pairs([("HOME", "/h"), ("KEY", "sk-1")]);
        FileConfig::parse("sallyport.toml", text, &env)
    }

    #[test]
    fn everything_is_read() {
        let config = parse(
            "plugin_dir = ['~/tools', '/opt/x']\ndefault_model = 'work'\n\
             [model.work]\nprovider = 'openai'\nkey = '${KEY}'\nstream = false\n\
             [settings.weather]\nforecast_url = 'http://x/${KEY}'\ndays = 3",
        )
        .unwrap();
        assert_eq!(config.plugin_dirs, [PathBuf::from("/h/tools"), PathBuf::from("/opt/x")]);
        let work = &config.models["work"];
        assert_eq!((work.key.as_deref(), work.stream), (Some("sk-1"), false));
        let weather = &config.settings[&"weather".parse::<PluginName>().unwrap()];
        assert_eq!(weather["forecast_url"], "http://x/sk-1");
        assert_eq!(weather["days"], 3);
    }

    #[test]
    fn mistakes_have_a_place() {
        let rows = [
            ("plugindir = '/x'", "1:1: unknown key"),
            ("\n[model.a]\nprovider = 'gpt'", "3:12: "),
            ("[model.a]\nprovider = 'openai'\nkey = '${NOPE}'", "3:7: the environment variable"),
            ("[settings.Weather]\nx = 1", "1:11: "),
            ("plugin_dir = 3", "1:14: "),
        ];
        for (text, want) in rows {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
