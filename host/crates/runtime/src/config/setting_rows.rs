//! The effective configuration: each value with its origin. Keys are hidden.

use sallyport_policy::TimeSpan;
use sallyport_store::DatabaseAddress;
use serde_json::{Map, Value, json};
use url::Url;

use super::{HostSettings, ModelChoice, SettingOrigin, env, file::KEY_PLACES};

/// Shown instead of a hidden value.
const HIDDEN: &str = "[hidden]";

/// Parts of the names of plugin settings whose values are hidden.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "password", "credential"];

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingRow {
    /// The path of the key, such as `chat.system`.
    pub key: String,
    /// The value; null when unset.
    pub value: Value,
    /// Its origin, in human-readable form.
    pub origin: String,
}

impl HostSettings {
    /// Every effective value. Keys that begin with `in-use` describe the model in use.
    pub fn setting_rows(&self) -> Vec<SettingRow> {
        let origin = self.plugin_dirs_origin.to_string();
        let mut rows =
            vec![SettingRow { key: "plugin_dir".into(), value: json!(self.plugin_dirs), origin }];
        rows.extend(self.default_model_row());
        rows.extend(self.model_in_use_rows());
        for (table, values) in [
            ("chat", self.chat.display_values()),
            ("budget", json!(self.budget)),
            ("sessions", json!(self.sessions)),
            ("internal", json!(self.internal)),
            ("browser", json!(self.browser)),
            ("approvals", json!(self.approvals)),
            ("terminal", json!(self.terminal)),
            ("packages", json!(self.packages)),
            ("compile", json!(self.compile)),
        ] {
            rows.extend(values.as_object().into_iter().flatten().map(|(key, value)| {
                let value = match (key.as_str(), value.as_str()) {
                    ("index", Some(address)) => json!(display_address(address)),
                    _ => value.clone(),
                };
                let key = format!("{table}.{key}");
                let origin = self.setting_origin(&key).to_string();
                SettingRow { key, value, origin }
            }));
        }
        rows.extend(self.table_setting_rows("embedding"));
        rows.extend(self.table_setting_rows("telemetry"));
        rows.extend(self.table_setting_rows("login"));
        rows.extend(self.table_setting_rows("serve"));
        rows.extend(self.table_setting_rows("store"));
        for top in ["model", "price", "mcp", "settings"] {
            rows.extend(self.named_table_rows(top));
        }
        rows
    }

    /// The origin of a key of these tables. Environment variables override only two of them.
    fn setting_origin(&self, key: &str) -> SettingOrigin {
        match key {
            "browser.command" if self.env.get(env::BROWSER).is_some() => {
                SettingOrigin::Variable(env::BROWSER)
            }
            "compile.wait" if self.env.get(env::COMPILE_WAIT).is_some() => {
                SettingOrigin::Variable(env::COMPILE_WAIT)
            }
            key => self.raw_config.value_origin(key),
        }
    }

    fn default_model_row(&self) -> Option<SettingRow> {
        let (value, origin) = self.raw_config.value_with_origin("default_model")?;
        Some(SettingRow { key: "default_model".into(), value, origin: origin.to_string() })
    }

    /// The model in use, with its resolved parts.
    fn model_in_use_rows(&self) -> Vec<SettingRow> {
        let why = &self.chosen_model.reason;
        let row = |key: &str, value: Value, origin: &str| SettingRow {
            key: format!("in-use.{key}"),
            value,
            origin: origin.to_owned(),
        };
        let mut rows = vec![row("model", json!(self.chosen_model.name), why)];
        if let ModelChoice::Endpoint(endpoint) = &self.model {
            let sources = &self.chosen_model.origins;
            let (address, key) = (sources.address.to_string(), sources.key.map(|o| o.to_string()));
            let none = "nothing is set".to_owned();
            rows.extend([
                row("protocol", json!(endpoint.protocol.as_str()), why),
                row("base_url", json!(display_address(&endpoint.base_url)), &address),
                row("key", json!(key.as_ref().map(|_| HIDDEN)), key.as_ref().unwrap_or(&none)),
                row(
                    "time_max",
                    json!(TimeSpan(endpoint.time_max).to_string()),
                    &sources.time.to_string(),
                ),
            ]);
        }
        if let ModelChoice::Plugin(plugin) = &self.model {
            let time = self.chosen_model.origins.time.to_string();
            rows.extend([
                row("plugin", json!(plugin.plugin), why),
                row("plugin-model", json!(plugin.model), why),
                row("time_max", json!(TimeSpan(plugin.time_max).to_string()), &time),
            ]);
        }
        rows
    }

    /// The contents of a table in the files, which is one file's as a whole.
    fn table_setting_rows(&self, name: &str) -> Vec<SettingRow> {
        let table = self.raw_config.value_with_origin(name);
        table.map_or(Vec::new(), |(table, origin)| table_rows(name, name, &table, origin))
    }

    /// The contents of the tables under names in the files.
    fn named_table_rows(&self, top: &str) -> Vec<SettingRow> {
        let tables = self.raw_config.tables_with_origin(top).into_iter();
        let rows = tables.flat_map(|(name, table, origin)| {
            table_rows(top, &format!("{top}.{}", quote_toml_key(name)), table, origin)
        });
        rows.collect()
    }
}

/// The address of a database without its password; a variable as it is written.
fn redact_database(value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default();
    match DatabaseAddress::parse(text) {
        Ok(address) => json!(address.shown()),
        Err(_) => redact_value("key", value),
    }
}

/// A row for each key of the table at a path below a top-level key.
fn table_rows(top: &str, path: &str, table: &Value, origin: SettingOrigin) -> Vec<SettingRow> {
    let row = |(key, value): (&String, &Value)| {
        let value = match (top, key.as_str()) {
            ("model" | "embedding", "base_url")
            | ("mcp", "url")
            | ("telemetry", "endpoint")
            | ("login", "issuer") => {
                json!(display_address(value.as_str().unwrap_or("")))
            }
            ("store", "url") => redact_database(value),
            ("model" | "embedding", "key") | ("login", "client_secret") | ("settings", _) => {
                redact_value(key, value)
            }
            ("mcp", "env" | "headers") | ("telemetry", "headers") => hide_texts(value),
            _ => value.clone(),
        };
        let key = format!("{path}.{}", quote_toml_key(key));
        SettingRow { key, value, origin: origin.to_string() }
    };
    table.as_object().into_iter().flatten().map(row).collect()
}

/// A TOML key, quoted where necessary.
fn quote_toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

/// An address that is safe to show. Users put keys into addresses, so one that has credentials or a
/// query, or does not parse, is hidden.
pub(crate) fn display_address(address: &str) -> String {
    match Url::parse(address.trim()) {
        Ok(url)
            if url.username().is_empty() && url.password().is_none() && url.query().is_none() =>
        {
            address.to_owned()
        }
        // The name of a variable reveals nothing of its value.
        Err(_) if address.starts_with("${") => address.to_owned(),
        _ => HIDDEN.to_owned(),
    }
}

/// True for a name that suggests a secret value.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// A value without the parts that look secret by their names. A variable is shown by its name.
fn redact_value(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(Map::from_iter(map.iter().map(|(k, v)| (k.clone(), redact_value(k, v)))))
        }
        Value::String(text) if text.starts_with("${") && text.ends_with('}') => value.clone(),
        // The place of a key reveals nothing of the key.
        _ if is_secret_name(name) && !KEY_PLACES[1..].contains(&name) => json!(HIDDEN),
        _ => value.clone(),
    }
}

/// A table without its values. A variable is shown by its name.
fn hide_texts(table: &Value) -> Value {
    let hide = |(name, value): (&String, &Value)| {
        let is_variable =
            value.as_str().is_some_and(|text| text.starts_with("${") && text.ends_with('}'));
        (name.clone(), if is_variable { value.clone() } else { json!(HIDDEN) })
    };
    Value::Object(table.as_object().into_iter().flatten().map(hide).collect())
}

/// The origins of the parts of the model in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelOrigins {
    /// Its address.
    pub address: SettingOrigin,
    /// Its key, if it has one.
    pub key: Option<SettingOrigin>,
    /// Its timeout of an answer.
    pub time: SettingOrigin,
}

impl ModelOrigins {
    /// No origin: nothing was set.
    pub const NONE: Self =
        Self { address: SettingOrigin::Default, key: None, time: SettingOrigin::Default };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_not_shown() {
        let rows = [
            ("key", json!("sk-1"), json!(HIDDEN)),
            ("key", json!("${KEY}"), json!("${KEY}")),
            ("key", json!("sk-${KEY}"), json!(HIDDEN)),
            ("API_TOKEN", json!(5), json!(HIDDEN)),
            ("key_file", json!("~/keys/openai"), json!("~/keys/openai")),
            ("days", json!(3), json!(3)),
            (
                "login",
                json!({ "user": "a", "password": "b" }),
                json!({ "user": "a", "password": HIDDEN }),
            ),
        ];
        for (name, value, want) in rows {
            assert_eq!(redact_value(name, &value), want, "{name}");
        }
        assert_eq!(display_address("http://x/v1"), "http://x/v1");
        for address in ["http://a:b@x/v1", "http://x?key=1", "sk-1"] {
            assert_eq!(display_address(address), HIDDEN);
        }
        assert_eq!(quote_toml_key("gpt-*"), "\"gpt-*\"");
    }
}
