//! The effective configuration: each value with its origin. Keys are hidden.

use serde_json::{Map, Value, json};
use url::Url;

use super::{ModelChoice, Origin, Settings, env, sections::shown_time};

/// Shown instead of a hidden value.
const HIDDEN: &str = "[hidden]";

/// Parts of the names of plugin settings whose values are hidden.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "password", "credential"];

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The path of the key, such as `chat.system`.
    pub key: String,
    /// The value; null when unset.
    pub value: Value,
    /// Its origin, in human-readable form.
    pub origin: String,
}

impl Settings {
    /// Every effective value. Keys that begin with `in-use` describe the model in use.
    pub fn rows(&self) -> Vec<Row> {
        let origin = self.plugin_dirs_origin.to_string();
        let mut rows =
            vec![Row { key: "plugin_dir".into(), value: json!(self.plugin_dirs), origin }];
        rows.extend(self.default_model());
        rows.extend(self.in_use());
        for (table, values) in [
            ("chat", self.chat.shown()),
            ("budget", self.budget.shown()),
            ("sessions", self.sessions.shown()),
            ("internal", self.internal.shown()),
            ("browser", self.browser.shown()),
            ("packages", self.packages.shown()),
            ("compile", self.compile.shown()),
        ] {
            rows.extend(values.into_iter().map(|(key, value)| {
                let key = format!("{table}.{key}");
                let origin = self.origin_of(&key).to_string();
                Row { key, value, origin }
            }));
        }
        rows.extend(self.embedding());
        for top in ["model", "price", "settings"] {
            rows.extend(self.tables(top));
        }
        rows
    }

    /// The origin of a key of these tables. Environment variables override only two of them.
    fn origin_of(&self, key: &str) -> Origin {
        match key {
            "browser.command" if self.env.get(env::BROWSER).is_some() => {
                Origin::Variable(env::BROWSER)
            }
            "compile.wait" if self.env.get(env::COMPILE_WAIT).is_some() => {
                Origin::Variable(env::COMPILE_WAIT)
            }
            key => self.written.origin(key),
        }
    }

    fn default_model(&self) -> Option<Row> {
        let (value, origin) = self.written.value("default_model")?;
        Some(Row { key: "default_model".into(), value, origin: origin.to_string() })
    }

    /// The model in use, with its resolved parts.
    fn in_use(&self) -> Vec<Row> {
        let why = &self.chosen.why;
        let row = |key: &str, value: Value, origin: &str| Row {
            key: format!("in-use.{key}"),
            value,
            origin: origin.to_owned(),
        };
        let mut rows = vec![row("model", json!(self.chosen.name), why)];
        if let ModelChoice::Endpoint(endpoint) = &self.model {
            let sources = &self.chosen.sources;
            let (address, key) = (sources.address.to_string(), sources.key.map(|o| o.to_string()));
            let none = "nothing is set".to_owned();
            rows.extend([
                row("protocol", json!(endpoint.protocol.as_str()), why),
                row("base_url", json!(address_shown(&endpoint.base_url)), &address),
                row("key", json!(key.as_ref().map(|_| HIDDEN)), key.as_ref().unwrap_or(&none)),
                row("time_max", json!(shown_time(endpoint.time_max)), &sources.time.to_string()),
            ]);
        }
        if let ModelChoice::Plugin(plugin) = &self.model {
            let time = self.chosen.sources.time.to_string();
            rows.extend([
                row("plugin", json!(plugin.plugin), why),
                row("plugin-model", json!(plugin.model), why),
                row("time_max", json!(shown_time(plugin.time_max)), &time),
            ]);
        }
        rows
    }

    /// The contents of `[embedding]` in the files.
    fn embedding(&self) -> Vec<Row> {
        let Some((table, origin)) = self.written.value("embedding") else { return Vec::new() };
        let row = |(key, value): (&String, &Value)| {
            let value = match key.as_str() {
                "base_url" => json!(address_shown(value.as_str().unwrap_or(""))),
                _ => redacted(key, value),
            };
            Row { key: format!("embedding.{key}"), value, origin: origin.to_string() }
        };
        table.as_object().into_iter().flatten().map(row).collect()
    }

    fn tables(&self, top: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, table, origin) in self.written.tables(top) {
            for (key, value) in table.as_object().into_iter().flatten() {
                let value = match (top, key.as_str()) {
                    ("model", "base_url") => json!(address_shown(value.as_str().unwrap_or(""))),
                    ("model", "key") | ("settings", _) => redacted(key, value),
                    _ => value.clone(),
                };
                let key = format!("{top}.{}.{}", key_shown(name), key_shown(key));
                rows.push(Row { key, value, origin: origin.to_string() });
            }
        }
        rows
    }
}

/// A TOML key, quoted where necessary.
fn key_shown(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

/// An address that is safe to show. Users put keys into addresses, so one that has credentials or a
/// query, or does not parse, is hidden.
pub(super) fn address_shown(address: &str) -> String {
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
pub fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// A value without the parts that look secret by their names. A variable is shown by its name.
fn redacted(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(Map::from_iter(map.iter().map(|(k, v)| (k.clone(), redacted(k, v)))))
        }
        Value::String(text) if text.starts_with("${") && text.ends_with('}') => value.clone(),
        _ if is_secret(name) => json!(HIDDEN),
        _ => value.clone(),
    }
}

/// The origins of the parts of the model in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Its address.
    pub address: Origin,
    /// Its key, if it has one.
    pub key: Option<Origin>,
    /// Its timeout of an answer.
    pub time: Origin,
}

impl Sources {
    /// No origin: nothing was set.
    pub const NONE: Self = Self { address: Origin::Default, key: None, time: Origin::Default };
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
            ("days", json!(3), json!(3)),
            (
                "login",
                json!({ "user": "a", "password": "b" }),
                json!({ "user": "a", "password": HIDDEN }),
            ),
        ];
        for (name, value, want) in rows {
            assert_eq!(redacted(name, &value), want, "{name}");
        }
        assert_eq!(address_shown("http://x/v1"), "http://x/v1");
        for address in ["http://a:b@x/v1", "http://x?key=1", "sk-1"] {
            assert_eq!(address_shown(address), HIDDEN);
        }
        assert_eq!(key_shown("gpt-*"), "\"gpt-*\"");
    }
}
