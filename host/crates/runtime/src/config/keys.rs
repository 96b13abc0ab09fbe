//! Every key of `sallyport.toml`, in one table that the JSON Schema and the listing are made from.

use serde_json::{Map, Value, json};

use super::{
    file::{EFFORTS, TOOL_CALLINGS},
    provider::{self, PLUGIN_PREFIX},
    sections::{EDIT_MODES, MEMORY_KINDS},
};

/// One key of the file.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    /// The path of the key, such as `chat.system`. A `*` is any name.
    pub path: &'static str,
    kind: ConfigValueType,
    description: &'static str,
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfigValueType {
    Text,
    Texts,
    Plugin,
    TextOrTexts,
    Word(ConfigWordSet),
    Boolean,
    /// A number from 0 up, which may have a fraction.
    Amount,
    /// A number above 0, which may have a fraction.
    Money,
    /// A whole number from 1 up.
    Count,
    Time,
    Age,
    Any,
}

/// A key whose value is one of a set of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfigWordSet {
    Providers,
    Efforts,
    ToolCallings,
    Memories,
    EditModes,
}

const fn config_key(
    path: &'static str,
    kind: ConfigValueType,
    description: &'static str,
) -> ConfigKey {
    ConfigKey { path, kind, description }
}

/// Every key that the file may contain.
#[rustfmt::skip]
pub const ALL: [ConfigKey; 46] = [
    config_key("plugin_dir", ConfigValueType::TextOrTexts, "Folders in which plugins are looked for"),
    config_key("default_model", ConfigValueType::Text, "The model that is used: a [model.NAME] table, or offline"),
    config_key("model.*.provider", ConfigValueType::Word(ConfigWordSet::Providers), "Where the model is asked, or plugin:NAME"),
    config_key("model.*.model", ConfigValueType::Text, "The model's name at the provider"),
    config_key("model.*.base_url", ConfigValueType::Text, "Address of the endpoint; the provider's own when absent"),
    config_key("model.*.key", ConfigValueType::Text, "The key; write ${VARIABLE} to have it from the environment"),
    config_key("model.*.stream", ConfigValueType::Boolean, "Whether answers arrive while they are written; true"),
    config_key("model.*.temperature", ConfigValueType::Amount, "How freely the model answers"),
    config_key("model.*.max_output_tokens", ConfigValueType::Count, "Most tokens of one answer"),
    config_key("model.*.reasoning", ConfigValueType::Word(ConfigWordSet::Efforts), "How long the model thinks"),
    config_key("model.*.tools", ConfigValueType::Word(ConfigWordSet::ToolCallings), "How the model is told of tools: in the provider's way, or as JSON in text; native"),
    config_key("model.*.time_max", ConfigValueType::Time, "Longest time for one answer; 10m"),
    config_key("model.*.context_tokens", ConfigValueType::Count, "How many tokens a conversation can have"),
    config_key("embedding.provider", ConfigValueType::Word(ConfigWordSet::Providers), "Where texts are made into vectors, for the memory vector-db; without the table, the model's own provider"),
    config_key("embedding.model", ConfigValueType::Text, "The model that makes them; the provider's usual one when absent"),
    config_key("embedding.base_url", ConfigValueType::Text, "Address of the endpoint; the provider's own when absent"),
    config_key("embedding.key", ConfigValueType::Text, "The key; write ${VARIABLE} to have it from the environment"),
    config_key("price.*.input", ConfigValueType::Amount, "US dollars for a million tokens read; the name is a glob of models"),
    config_key("price.*.output", ConfigValueType::Amount, "US dollars for a million tokens written"),
    config_key("price.*.cached_input", ConfigValueType::Amount, "US dollars for a million tokens read from the cache; as input"),
    config_key("price.*.cache_write", ConfigValueType::Amount, "US dollars for a million tokens written into the cache; as input"),
    config_key("chat.system", ConfigValueType::Text, "What the model should be and do"),
    config_key("chat.memory", ConfigValueType::Word(ConfigWordSet::Memories), "How much of a long conversation is sent; sliding-window where the model's size is known, else none"),
    config_key("chat.memory_tokens", ConfigValueType::Count, "Most tokens of a conversation that are sent; three quarters of the model's context_tokens"),
    config_key("chat.recalled_tokens", ConfigValueType::Count, "Most tokens of what is recalled for one input, with the memory vector-db; 2000"),
    config_key("chat.memories", ConfigValueType::Texts, "What the model should know from the start"),
    config_key("chat.guide", ConfigValueType::Plugin, "The plugin that says who the assistant is"),
    config_key("chat.tool_tokens_max", ConfigValueType::Count, "Most tokens of tool definitions before the model is given a search in their place; 10000"),
    config_key("chat.edit_mode", ConfigValueType::Word(ConfigWordSet::EditModes), "Which keys the line editor follows; emacs"),
    config_key("chat.show_reasoning", ConfigValueType::Boolean, "Whether the model's reasoning is shown; false"),
    config_key("budget.turns", ConfigValueType::Count, "Most answers of the model to one input; 16"),
    config_key("budget.calls", ConfigValueType::Count, "Most calls for one input; 64"),
    config_key("budget.repeats", ConfigValueType::Count, "Most calls with the same arguments for one input; 3"),
    config_key("budget.tokens", ConfigValueType::Count, "Most tokens for one input"),
    config_key("budget.cost", ConfigValueType::Money, "Most US dollars for one input"),
    config_key("budget.time", ConfigValueType::Time, "Longest time for one input"),
    config_key("budget.session_tokens", ConfigValueType::Count, "Most tokens for a session"),
    config_key("budget.session_cost", ConfigValueType::Money, "Most US dollars for a session"),
    config_key("sessions.keep", ConfigValueType::Age, "How long sessions are kept since they were last used; 90d"),
    config_key("sessions.keep_max", ConfigValueType::Count, "Most sessions that are kept; 1000"),
    config_key("internal.reminder", ConfigValueType::Boolean, "Whether there are the tools for reminders that the program brings along; true"),
    config_key("browser.command", ConfigValueType::Text, "How plugins open web pages: a program that is given the address, or none; the desktop's browser"),
    config_key("packages.index", ConfigValueType::Text, "Address of the index that plugins get packages of a language from"),
    config_key("compile.wait", ConfigValueType::Time, "Longest wait of a start for plugins that are not compiled yet; 2s, and less where they are only listed"),
    config_key("compile.cpu_time", ConfigValueType::Time, "Most processor time of one compilation; 20s"),
    config_key("settings.*.*", ConfigValueType::Any, "What a plugin is told; its manifest says which keys it takes"),
];

/// The keys that a table must contain if it exists.
const REQUIRED: [&str; 4] =
    ["model.*.provider", "embedding.provider", "price.*.input", "price.*.output"];

/// The top-level keys of the file, each once.
pub fn top_level_keys() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    ALL.iter().filter_map(move |key| {
        let top = key.path.split('.').next().unwrap_or(key.path);
        let is_new = top != last;
        last = top;
        is_new.then_some(top)
    })
}

/// The JSON Schema of `sallyport.toml`.
pub fn config_schema() -> Value {
    let mut root = empty_object_schema();
    for key in ALL {
        insert_key(&mut root, key.path, "", key);
    }
    let description = "The configuration of Sallyport, sallyport.toml.";
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sallyport.toml",
        "description": description,
    });
    if let (Value::Object(schema), Value::Object(root)) = (&mut schema, root) {
        schema.extend(root);
    }
    schema
}

fn empty_object_schema() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// Adds a key to the schema of the table that `path` starts in.
fn insert_key(table: &mut Value, path: &str, above: &str, key: ConfigKey) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let here = format!("{above}{name}");
    let place = match name {
        "*" => &mut table["additionalProperties"],
        name => &mut table["properties"][name],
    };
    if rest.is_empty() {
        *place = key.json_schema();
        if REQUIRED.contains(&here.as_str()) {
            match &mut table["required"] {
                Value::Array(names) => names.push(json!(name)),
                required => *required = json!([name]),
            }
        }
        return;
    }
    if !place.is_object() {
        *place = empty_object_schema();
    }
    insert_key(place, rest, &format!("{here}."), key);
}

impl ConfigKey {
    fn json_schema(self) -> Value {
        let mut schema = self.kind.json_schema();
        schema.insert("description".to_owned(), json!(self.description));
        Value::Object(schema)
    }
}

impl ConfigValueType {
    fn json_schema(self) -> Map<String, Value> {
        let schema = match self {
            Self::Text => json!({ "type": "string" }),
            Self::Plugin => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]*$" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::TextOrTexts => {
                json!({ "type": ["string", "array"], "items": { "type": "string" } })
            }
            Self::Word(ConfigWordSet::Providers) => json!({ "anyOf": [
                { "enum": ConfigWordSet::Providers.allowed_words() },
                { "type": "string", "pattern": format!("^{PLUGIN_PREFIX}[a-z][a-z0-9_-]*$") },
            ] }),
            Self::Word(words) => json!({ "enum": words.allowed_words() }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Amount => json!({ "type": "number", "minimum": 0 }),
            Self::Money => json!({ "type": "number", "exclusiveMinimum": 0 }),
            Self::Count => json!({ "type": "integer", "minimum": 1 }),
            Self::Time => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" }),
            Self::Age => {
                json!({ "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d)|forever)$" })
            }
            Self::Any => json!({}),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

impl ConfigWordSet {
    fn allowed_words(self) -> Vec<&'static str> {
        match self {
            Self::Providers => provider::ALL.map(|provider| provider.name).to_vec(),
            Self::Efforts => EFFORTS.map(|(word, _)| word).to_vec(),
            Self::ToolCallings => TOOL_CALLINGS.map(|(word, _)| word).to_vec(),
            Self::Memories => MEMORY_KINDS.map(|(word, _)| word).to_vec(),
            Self::EditModes => EDIT_MODES.map(|(word, _)| word).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Env, FileConfig};

    fn sample(kind: ConfigValueType) -> &'static str {
        match kind {
            ConfigValueType::Text | ConfigValueType::TextOrTexts | ConfigValueType::Plugin => "'x'",
            ConfigValueType::Texts => "['x']",
            ConfigValueType::Word(words) => match words {
                ConfigWordSet::Providers => "'ollama'",
                ConfigWordSet::Efforts => "'low'",
                ConfigWordSet::ToolCallings => "'json'",
                ConfigWordSet::Memories => "'summary'",
                ConfigWordSet::EditModes => "'vi'",
            },
            ConfigValueType::Boolean => "true",
            ConfigValueType::Amount | ConfigValueType::Money => "0.5",
            ConfigValueType::Count => "7",
            ConfigValueType::Time => "'10s'",
            ConfigValueType::Age => "'90d'",
            ConfigValueType::Any => "[1]",
        }
    }

    fn parse(text: &str) -> Result<FileConfig, String> {
        FileConfig::parse("c", text, &Env::from_pairs([])).map_err(|error| error.to_string())
    }

    /// The keys that a table requires besides the one under test.
    fn beside(key: ConfigKey) -> String {
        let table = key.path.rsplit_once('.').map_or("", |(table, _)| table);
        let needed = REQUIRED
            .iter()
            .filter(|path| path.starts_with(&format!("{table}.")) && **path != key.path);
        let lines = needed.map(|path| {
            let needed = ALL.iter().find(|key| key.path == *path).unwrap();
            format!("{} = {}\n", needed.path.replace('*', "a"), sample(needed.kind))
        });
        lines.collect()
    }

    #[test]
    fn the_parser_knows_every_key_and_what_stands_behind_it() {
        for key in ALL {
            let path = key.path.replace('*', "a");
            let text = |value: &str| format!("{}{path} = {value}\n", beside(key));
            parse(&text(sample(key.kind))).unwrap_or_else(|error| panic!("{path}: {error}"));
            if key.kind != ConfigValueType::Any {
                let wrong = parse(&text("1979-05-27")).unwrap_err();
                assert!(wrong.contains(path.rsplit('.').next().unwrap()), "{wrong}");
            }
        }
        for path in REQUIRED {
            let key = *ALL.iter().find(|key| key.path == path).unwrap();
            let rest = beside(key) + &path.rsplit_once('.').unwrap().0.replace('*', "a");
            assert!(parse(&format!("{rest}.zz = 1")).is_err(), "{path}");
        }
    }

    #[test]
    fn the_parser_knows_no_other_key() {
        let tables = [
            "",
            "model.a.",
            "price.a.",
            "chat.",
            "budget.",
            "sessions.",
            "internal.",
            "browser.",
            "packages.",
            "compile.",
        ];
        for table in tables {
            let required: &str = match table {
                "model.a." => "model.a.provider = 'vllm'\n",
                "price.a." => "price.a.input = 1\nprice.a.output = 1\n",
                _ => "",
            };
            let error = FileConfig::parse(
                "c",
                &format!("{required}{table}zzzzzz = 1"),
                &Env::from_pairs([]),
            )
            .unwrap_err();
            let known: Vec<&str> = match table {
                "" => top_level_keys().collect(),
                table => {
                    let table = table.replace(".a.", ".*.");
                    ALL.iter().filter_map(|key| key.path.strip_prefix(&table)).collect()
                }
            };
            let hint = format!("the keys known here are {}", known.join(", "));
            assert_eq!(error.hint, Some(hint));
        }
    }

    #[test]
    fn the_schema_has_every_key_once() {
        let schema = config_schema();
        for key in ALL {
            let pointer = format!("/{}", key.path.replace('.', "/"));
            let pointer = pointer.replace("/*", "/additionalProperties");
            let pointer: String = pointer
                .split('/')
                .skip(1)
                .map(|part| match part {
                    "additionalProperties" => format!("/{part}"),
                    part => format!("/properties/{part}"),
                })
                .collect();
            let found = schema.pointer(&pointer).unwrap_or_else(|| panic!("no {pointer}"));
            assert_eq!(found["description"], key.description);
        }
        assert_eq!(
            schema["properties"]["model"]["additionalProperties"]["required"][0],
            "provider"
        );
        assert_eq!(schema["additionalProperties"], false);
    }
}
