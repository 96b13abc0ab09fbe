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
//! [approvals]
//! hook = ["notify-my-phone", "--urgent"]
//!
//! [terminal]
//! images = "off"
//!
//! [packages]
//! index = "https://packages.example.com/simple/"
//!
//! [compile]
//! wait = "10s"
//! cpu_time = "60s"
//!
//! [telemetry]
//! endpoint = "http://127.0.0.1:4318"
//!
//! [login]
//! issuer = "https://id.example.com"
//! client_id = "sallyport"
//! client_secret_file = "~/keys/login"
//! roles = { staff = "user", leads = "approver" }
//!
//! [serve]
//! certificate_file = "/etc/ssl/sallyport/fullchain.pem"
//! key_file = "/etc/ssl/sallyport/privkey.pem"
//!
//! [store]
//! url_file = "~/keys/database"
//!
//! [mcp.files]
//! command = ["mcp-server-filesystem", "/home/ann/notes"]
//!
//! [settings.weather]
//! forecast_url = "http://127.0.0.1:8080"
//! ```

use std::{collections::BTreeMap, fmt};

use sallyport_contract::PluginName;
use sallyport_model::{ReasoningEffort, TokenPrice, ToolCallingMode};
use sallyport_policy::SourceError;
use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use toml::de::DeTable;

use super::{
    ApprovalSettings, BrowserSettings, BudgetSettings, ChatSettings, CompileSettings,
    InternalToolSettings, LoginSettings, PackageSettings, ServeSettings, SessionRetention,
    SettingOrigin, StoreSettings, TelemetrySettings, TerminalSettings,
    provider::{self, ProviderChoice},
    reader::ConfigText,
    values::{
        ModelGlob, NonblankText, OutputTokens, PluginSetting, PositiveAmount, TextOrTexts,
        TimeLimit, TokenCount, VariableText,
    },
};

/// The configuration of Sallyport, sallyport.toml.
///
/// A project's file that the user does not trust may contain only the keys that are marked with
/// `x-untrusted-project`. Variables are replaced where `x-variables` is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "sallyport.toml")]
pub struct FileConfig {
    /// The folders that are searched for plugins.
    #[schemars(extend("x-variables" = true))]
    pub plugin_dir: Option<TextOrTexts>,
    /// The model that is used: a `[model.NAME]` table, or offline.
    #[schemars(extend("x-untrusted-project" = "choose"))]
    pub default_model: Option<NonblankText>,
    /// The models.
    pub model: BTreeMap<NonblankText, ModelEntry>,
    /// The embedding model, for the memory vector-db; without it, the provider of the model.
    pub embedding: Option<EmbeddingEntry>,
    /// The prices of models; each name is a glob of their names.
    #[schemars(with = "BTreeMap<String, PriceEntry>")]
    pub price: BTreeMap<ModelGlob, PriceEntry>,
    /// How conversations are held.
    pub chat: ChatSettings,
    /// How much a conversation may use.
    #[schemars(extend("x-untrusted-project" = "lower"))]
    pub budget: BudgetSettings,
    /// How long sessions are kept.
    pub sessions: SessionRetention,
    /// Which built-in tools are enabled.
    pub internal: InternalToolSettings,
    /// How web pages are opened.
    pub browser: BrowserSettings,
    /// Where questions go besides the program that asks.
    pub approvals: ApprovalSettings,
    /// What the terminal shows.
    pub terminal: TerminalSettings,
    /// Where plugins get packages.
    pub packages: PackageSettings,
    /// How plugins are compiled.
    pub compile: CompileSettings,
    /// Where spans are sent; without it, nowhere.
    pub telemetry: Option<TelemetrySettings>,
    /// The identity server at which people log in to the console of the service; without it, they
    /// log in with a token.
    pub login: Option<LoginSettings>,
    /// The certificate with which the service encrypts its connections; without it, it does not.
    pub serve: Option<ServeSettings>,
    /// Where everything is kept that outlives a process; without it, in the home.
    pub store: Option<StoreSettings>,
    /// MCP servers whose tools are used; each name is that of their plugin.
    #[schemars(with = "BTreeMap<String, McpServerEntry>")]
    pub mcp: BTreeMap<PluginName, McpServerEntry>,
    /// The settings of each plugin.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, PluginSetting>>")]
    pub settings: BTreeMap<PluginName, BTreeMap<String, PluginSetting>>,
}

/// One `[model.NAME]` table.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// The provider of the model, or plugin:NAME.
    #[schemars(schema_with = "provider::provider_schema")]
    pub provider: ProviderChoice,
    /// The model's name at the provider.
    #[schemars(extend("x-variables" = true))]
    pub model: Option<String>,
    /// The address of the endpoint; without it, the provider's own.
    #[schemars(extend("x-variables" = true))]
    pub base_url: Option<String>,
    /// The key; `${VARIABLE}` takes it from the environment.
    #[schemars(extend("x-variables" = true))]
    pub key: Option<String>,
    /// The file that contains the key, an absolute path or one below ~; only its owner may be
    /// allowed to read it.
    #[schemars(extend("x-variables" = true))]
    pub key_file: Option<String>,
    /// The entry of the system's keyring that contains the key: SERVICE/ACCOUNT.
    pub key_keyring: Option<String>,
    /// Whether answers are streamed.
    #[serde(default = "stream_by_default")]
    pub stream: bool,
    /// Sampling temperature.
    pub temperature: Option<PositiveAmount>,
    /// Most tokens of one answer.
    pub max_output_tokens: Option<OutputTokens>,
    /// How much effort the model spends on reasoning.
    pub reasoning: Option<ReasoningEffort>,
    /// How tools are described to the model: in the provider's way, or as JSON in the text.
    #[serde(default)]
    pub tools: ToolCallingMode,
    /// Longest time for one answer; without it, 10m.
    pub time_max: Option<TimeLimit>,
    /// How many tokens the model can read.
    pub context_tokens: Option<TokenCount>,
    /// The file that contains the table.
    #[serde(skip)]
    pub origin: SettingOrigin,
}

/// One `[mcp.NAME]` table.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerEntry {
    /// The program of the server and its arguments. A server has this or an address.
    #[schemars(extend("x-variables" = true))]
    pub command: Option<Vec<String>>,
    /// The folder that it starts in; without it, an empty one. It has to be a granted one.
    #[schemars(extend("x-variables" = true))]
    pub folder: Option<String>,
    /// Its environment variables, besides the usual ones.
    #[serde(default)]
    pub env: BTreeMap<String, VariableText>,
    /// The address of the server, if it is no program of this machine.
    #[schemars(extend("x-variables" = true))]
    pub url: Option<String>,
    /// Headers of every request to the address, such as the one that signs in.
    #[serde(default)]
    pub headers: BTreeMap<String, VariableText>,
    /// How long it may take until it is ready; without it, 30s.
    pub start_time: Option<TimeLimit>,
    /// Longest time for one call; without it, that of the policy.
    pub time: Option<TimeLimit>,
}

/// The `[embedding]` table.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingEntry {
    /// The provider of the embedding model.
    #[serde(deserialize_with = "read_embedding_provider")]
    #[schemars(schema_with = "provider::provider_schema")]
    pub provider: ProviderChoice,
    /// The embedding model; without it, the provider's usual one.
    #[schemars(extend("x-variables" = true))]
    pub model: Option<String>,
    /// The address of the endpoint; without it, the provider's own.
    #[schemars(extend("x-variables" = true))]
    pub base_url: Option<String>,
    /// The key; `${VARIABLE}` takes it from the environment.
    #[schemars(extend("x-variables" = true))]
    pub key: Option<String>,
}

/// One `[price."GLOB"]` table, in US dollars for a million tokens.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// US dollars for a million tokens read.
    input: PositiveAmount,
    /// US dollars for a million tokens written.
    output: PositiveAmount,
    /// US dollars for a million tokens read from the cache; without it, as input.
    cached_input: Option<PositiveAmount>,
    /// US dollars for a million tokens written into the cache; without it, as input.
    cache_write: Option<PositiveAmount>,
}

impl fmt::Debug for ModelEntry {
    /// Leaves out the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, model, .. } = self;
        f.debug_struct("ModelEntry")
            .field("provider", &provider.name())
            .field("model", model)
            .finish()
    }
}

impl fmt::Debug for McpServerEntry {
    /// Leaves out the values of variables and headers, and the address, which can have a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, env, headers, .. } = self;
        f.debug_struct("McpServerEntry")
            .field("command", command)
            .field("env", &env.keys())
            .field("headers", &headers.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EmbeddingEntry {
    /// Leaves out the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, model, .. } = self;
        f.debug_struct("EmbeddingEntry")
            .field("provider", &provider.name())
            .field("model", model)
            .finish()
    }
}

impl PriceEntry {
    /// The price. Tokens read from a cache or written to one cost as much as other input, unless
    /// the file sets their price.
    pub(super) fn token_price(&self) -> TokenPrice {
        TokenPrice {
            input: self.input.0,
            output: self.output.0,
            cached_input: self.cached_input.unwrap_or(self.input).0,
            cache_write: self.cache_write.unwrap_or(self.input).0,
        }
    }
}

impl FileConfig {
    /// Refuses keys that concern a server where a plugin acts as the model, and two places of one
    /// key. A plugin gets its settings from `[settings.PLUGIN]` instead.
    pub(super) fn check_model_entries(
        &self,
        file: &ConfigText<'_>,
        root: &DeTable<'_>,
    ) -> Result<(), SourceError> {
        let tables = root.get("model").and_then(|tables| tables.get_ref().as_table());
        for (name, entry) in &self.model {
            let table = tables.and_then(|tables| tables.get(&**name)?.get_ref().as_table());
            let places = KEY_PLACES.iter().filter_map(|key| Some((key, table?.get(*key)?)));
            if let [(first, _), (second, value), ..] = places.collect::<Vec<_>>().as_slice() {
                let message = format!("\"{second}\" is not possible next to \"{first}\"");
                let place = file.place(value.span().start);
                return Err(place.into_error(message).with_hint("keep one of them"));
            }
            let ProviderChoice::Plugin(plugin) = &entry.provider else { continue };
            for key in ["base_url", "key", "key_file", "key_keyring", "reasoning"] {
                if let Some(value) = table.and_then(|table| table.get(key)) {
                    let hint = format!("put settings for {plugin} under [settings.{plugin}]");
                    let message = format!("\"{key}\" says nothing to a plugin");
                    let place = file.place(value.span().start);
                    return Err(place.into_error(message).with_hint(hint));
                }
            }
        }
        Ok(())
    }

    /// Refuses a server that is neither a program nor at an address, and keys of the other kind.
    pub(super) fn check_mcp_entries(
        &self,
        file: &ConfigText<'_>,
        root: &DeTable<'_>,
    ) -> Result<(), SourceError> {
        let tables = root.get("mcp").and_then(|tables| tables.get_ref().as_table());
        for (name, entry) in &self.mcp {
            let Some(table) = tables.and_then(|tables| tables.get(name.as_str())) else { continue };
            let (kind, foreign) = match (&entry.command, &entry.url) {
                (None, None) => {
                    let error = file.place(table.span().start);
                    let error = error.into_error("key \"command\" or \"url\" is missing");
                    return Err(error);
                }
                (None, Some(_)) => ("url", &["env", "folder"][..]),
                (Some(_), _) => ("command", &["url", "headers"][..]),
            };
            let keys = table.get_ref().as_table();
            let found = foreign.iter().find_map(|key| Some((key, keys?.get(*key)?)));
            if let Some((key, value)) = found {
                let message = format!("\"{key}\" is not possible next to \"{kind}\"");
                let place = file.place(value.span().start);
                return Err(place.into_error(message).with_hint("keep one of them"));
            }
        }
        Ok(())
    }
}

/// The keys of a `[model.NAME]` table that say where the key of the provider is.
pub(super) const KEY_PLACES: [&str; 3] = ["key", "key_file", "key_keyring"];

fn stream_by_default() -> bool {
    true
}

fn read_embedding_provider<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ProviderChoice, D::Error> {
    let choice = ProviderChoice::deserialize(deserializer)?;
    match &choice {
        ProviderChoice::Provider(known) if known.protocol.is_some() => Ok(choice),
        _ => Err(D::Error::custom(format!(
            "{} has no embedding models\nchoose a provider with embedding models",
            choice.name()
        ))),
    }
}

/// The JSON Schema of `sallyport.toml`.
pub fn config_schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let generator = settings.with_transform(remove_null).into_generator();
    generator.into_root_schema_for::<FileConfig>().into()
}

/// Removes null from a schema, because TOML has none: a key without a value is left out.
fn remove_null(schema: &mut Schema) {
    for word in ["type", "enum", "anyOf"] {
        if let Some(Value::Array(options)) = schema.get_mut(word) {
            let is_null = |option: &Value| option == "null" || option["type"] == "null";
            options.retain(|option| !option.is_null() && !is_null(option));
            match (word, options.as_mut_slice()) {
                ("type", [only]) => {
                    let only = only.take();
                    schema.insert(word.to_owned(), only);
                }
                ("anyOf", [Value::Object(only)]) => {
                    let only = std::mem::take(only);
                    schema.remove(word);
                    only.into_iter().for_each(|(key, value)| {
                        schema.ensure_object().entry(key).or_insert(value);
                    });
                }
                _ => {}
            }
        }
    }
    // A table has no default of its own: its keys have.
    if schema.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        schema.remove("default");
    }
    transform::transform_subschemas(&mut remove_null, schema);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Env;

    fn parse(text: &str) -> Result<FileConfig, SourceError> {
        let env = Env::from_pairs([("HOME", "/h"), ("KEY", "sk-1")]);
        ConfigText { name: "sallyport.toml".to_owned(), text }.parse_and_read(&env)
    }

    #[test]
    fn everything_is_read() {
        let config = parse(
            "plugin_dir = ['~/tools', '/opt/x']\ndefault_model = 'work'\n\
             [model.work]\nprovider = 'openai'\nkey = '${KEY}'\nstream = false\n\
             [settings.weather]\nforecast_url = 'http://x/${KEY}'\ndays = 3",
        )
        .unwrap();
        let folders = config.plugin_dir.as_ref().unwrap().as_slice();
        assert_eq!(folders, ["~/tools", "/opt/x"]);
        let work = &config.model[&NonblankText("work".to_owned())];
        assert_eq!((work.key.as_deref(), work.stream), (Some("sk-1"), false));
        let weather = &config.settings[&"weather".parse::<PluginName>().unwrap()];
        assert_eq!(weather["forecast_url"].0.as_str(), Some("http://x/sk-1"));
        assert_eq!(weather["days"].0.as_integer(), Some(3));
    }

    /// The key of `[embedding]` was shown.
    #[test]
    fn no_key_of_a_server_is_shown_for_debugging() {
        let text = "provider = 'openai'\nkey = '${KEY}'\n";
        let config = parse(&format!("[model.a]\n{text}[embedding]\n{text}")).unwrap();
        let shown = format!("{config:?}");
        assert!(shown.contains("openai") && !shown.contains("sk-1"), "{shown}");
    }

    #[test]
    fn mistakes_have_a_place() {
        let rows = [
            ("plugindir = '/x'", "1:1: unknown key"),
            ("\n[model.a]\nprovider = 'gpt'", "3:12: "),
            ("[model.a]\nprovider = 'openai'\nkey = '${NOPE}'", "3:7: the environment variable"),
            ("[settings.Weather]\nx = 1", "1:11: "),
            ("plugin_dir = 3", "1:14: "),
            ("[chat]\nsystem = 3", "2:10: \"system\" must be a string, not an integer"),
            ("[settings.weather]\nx = -inf", "2:5: \"x\" must be a finite number"),
            (
                "[model.a]\nprovider = 'vllm'\nmax_output_tokens = 4294967296",
                "3:21: \"max_output_tokens\" must be from 1 to 4294967295",
            ),
        ];
        for (text, want) in rows {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    /// Every key of the schema: its path, in which `a` is any name, its schema, and the required
    /// keys of its table.
    fn keys(table: &Value, path: &str, found: &mut Vec<(String, Value, Vec<String>)>) {
        let required = table["required"].as_array().into_iter().flatten();
        let required: Vec<_> = required.map(|key| key.as_str().unwrap().to_owned()).collect();
        let named = table["properties"].as_object().into_iter().flatten();
        let any = Some(&table["additionalProperties"]).filter(|schema| schema.is_object());
        for (key, schema) in
            named.map(|(key, schema)| (key.as_str(), schema)).chain(any.map(|any| ("a", any)))
        {
            let path = format!("{path}{key}");
            if schema["type"] == "object" {
                keys(schema, &format!("{path}."), found);
            } else {
                let beside = required.iter().filter(|other| *other != key).cloned().collect();
                found.push((path, schema.clone(), beside));
            }
        }
    }

    fn sample(schema: &Value) -> &'static str {
        let pattern = schema["pattern"].as_str();
        let first = &schema["oneOf"][0]["const"];
        match (schema["type"].as_str(), pattern, first.as_str()) {
            (Some("string"), Some(pattern), _) if pattern.contains("forever") => "'90d'",
            (Some("string"), Some(pattern), _) if pattern.contains("ms") => "'10s'",
            (Some("array"), ..) => "['x']",
            (Some("boolean"), ..) => "true",
            (Some("number"), ..) => "0.5",
            (Some("integer"), ..) if schema["minimum"].as_u64() > Some(7) => "5000",
            (Some("integer"), ..) => "7",
            (_, _, Some("none")) => "'summary'",
            (_, _, Some("auto")) => "'kitty'",
            (_, _, Some("emacs")) => "'vi'",
            (_, _, Some("low")) => "'high'",
            (_, _, Some("native")) => "'json'",
            (_, _, Some("user")) => "'operator'",
            _ if schema["anyOf"][0]["enum"][0] == "openai" => "'ollama'",
            _ => "'x'",
        }
    }

    #[test]
    fn every_key_has_a_description_and_refuses_what_it_is_not() {
        let mut found = Vec::new();
        keys(&config_schema(), "", &mut found);
        assert!(found.len() > 40, "{found:?}");
        for (path, schema, beside) in &found {
            assert!(schema["description"].is_string(), "{path}: {schema}");
            let table = path.rsplit_once('.').map_or("", |(table, _)| table);
            // Their keys are names of the user's choice.
            let is_free =
                ["settings.a", "mcp.a.env", "mcp.a.headers", "telemetry.headers", "login.roles"]
                    .contains(&table);
            let needed = match path.as_str() {
                "mcp.a.command" | "mcp.a.url" => "",
                path if path.starts_with("mcp.a.headers") => "mcp.a.url = 'x'\n",
                path if path.starts_with("telemetry.headers") => "telemetry.endpoint = 'x'\n",
                path if path.starts_with("login.roles") => {
                    "login.issuer = 'x'\nlogin.client_id = 'x'\n"
                }
                path if path.starts_with("mcp.a.") => "mcp.a.command = ['x']\n",
                _ => "",
            };
            let beside: String = beside
                .iter()
                .map(|key| {
                    let path = format!("{table}.{key}");
                    let (_, schema, _) = found.iter().find(|(other, ..)| *other == path).unwrap();
                    format!("{path} = {}\n", sample(schema))
                })
                .collect();
            let text = |value: &str| format!("{needed}{beside}{path} = {value}\n");
            parse(&text(sample(schema))).unwrap_or_else(|error| panic!("{path}: {error}"));
            if table != "settings.a" {
                let wrong = parse(&text("1979-05-27")).unwrap_err().to_string();
                assert!(wrong.contains(path.rsplit('.').next().unwrap()), "{wrong}");
            }
            if !table.is_empty() && !is_free {
                let unknown = text(sample(schema)) + &format!("{table}.zzzzzz = 1");
                let unknown = parse(&unknown).unwrap_err();
                let key = path.rsplit('.').next().unwrap();
                assert!(unknown.hint.unwrap().contains(key), "{path}");
            }
        }
        assert!(parse("zzzzzz = 1").unwrap_err().hint.unwrap().contains("plugin_dir"));
        for (path, text) in [
            ("provider", "[model.a]\nmodel = 'x'"),
            ("provider", "[embedding]\nmodel = 'x'"),
            ("input", "[price.a]\noutput = 1"),
            ("output", "[price.a]\ninput = 1"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("key \"{path}\" is missing")), "{error}");
        }
        assert_eq!(config_schema()["additionalProperties"], false);
        assert!(!config_schema().to_string().contains("null"));
    }
}
