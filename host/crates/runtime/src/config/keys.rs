//! Every key of `sallyport.toml`, in one table that the JSON Schema and the listing are made from.

use serde_json::{Map, Value, json};

use super::{
    file::{EFFORTS, TOOL_CALLINGS},
    provider::{self, PLUGIN_PREFIX},
    sections::{EDIT_MODES, MEMORIES},
};

/// One key of the file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The path of the key, such as `chat.system`. A `*` is any name.
    pub path: &'static str,
    kind: Kind,
    about: &'static str,
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Texts,
    Plugin,
    TextOrTexts,
    Word(Words),
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
enum Words {
    Providers,
    Efforts,
    ToolCallings,
    Memories,
    EditModes,
}

const fn key(path: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { path, kind, about }
}

/// Every key that the file may contain.
#[rustfmt::skip]
pub const ALL: [Key; 46] = [
    key("plugin_dir", Kind::TextOrTexts, "Folders in which plugins are looked for"),
    key("default_model", Kind::Text, "The model that is used: a [model.NAME] table, or offline"),
    key("model.*.provider", Kind::Word(Words::Providers), "Where the model is asked, or plugin:NAME"),
    key("model.*.model", Kind::Text, "The model's name at the provider"),
    key("model.*.base_url", Kind::Text, "Address of the endpoint; the provider's own when absent"),
    key("model.*.key", Kind::Text, "The key; write ${VARIABLE} to have it from the environment"),
    key("model.*.stream", Kind::Boolean, "Whether answers arrive while they are written; true"),
    key("model.*.temperature", Kind::Amount, "How freely the model answers"),
    key("model.*.max_output_tokens", Kind::Count, "Most tokens of one answer"),
    key("model.*.reasoning", Kind::Word(Words::Efforts), "How long the model thinks"),
    key("model.*.tools", Kind::Word(Words::ToolCallings), "How the model is told of tools: in the provider's way, or as JSON in text; native"),
    key("model.*.time_max", Kind::Time, "Longest time for one answer; 10m"),
    key("model.*.context_tokens", Kind::Count, "How many tokens a conversation can have"),
    key("embedding.provider", Kind::Word(Words::Providers), "Where texts are made into vectors, for the memory vector-db; without the table, the model's own provider"),
    key("embedding.model", Kind::Text, "The model that makes them; the provider's usual one when absent"),
    key("embedding.base_url", Kind::Text, "Address of the endpoint; the provider's own when absent"),
    key("embedding.key", Kind::Text, "The key; write ${VARIABLE} to have it from the environment"),
    key("price.*.input", Kind::Amount, "US dollars for a million tokens read; the name is a glob of models"),
    key("price.*.output", Kind::Amount, "US dollars for a million tokens written"),
    key("price.*.cached_input", Kind::Amount, "US dollars for a million tokens read from the cache; as input"),
    key("price.*.cache_write", Kind::Amount, "US dollars for a million tokens written into the cache; as input"),
    key("chat.system", Kind::Text, "What the model should be and do"),
    key("chat.memory", Kind::Word(Words::Memories), "How much of a long conversation is sent; sliding-window where the model's size is known, else none"),
    key("chat.memory_tokens", Kind::Count, "Most tokens of a conversation that are sent; three quarters of the model's context_tokens"),
    key("chat.recalled_tokens", Kind::Count, "Most tokens of what is recalled for one input, with the memory vector-db; 2000"),
    key("chat.memories", Kind::Texts, "What the model should know from the start"),
    key("chat.guide", Kind::Plugin, "The plugin that says who the assistant is"),
    key("chat.tool_tokens_max", Kind::Count, "Most tokens of tool definitions before the model is given a search in their place; 10000"),
    key("chat.edit_mode", Kind::Word(Words::EditModes), "Which keys the line editor follows; emacs"),
    key("chat.show_reasoning", Kind::Boolean, "Whether the model's reasoning is shown; false"),
    key("budget.turns", Kind::Count, "Most answers of the model to one input; 16"),
    key("budget.calls", Kind::Count, "Most calls for one input; 64"),
    key("budget.repeats", Kind::Count, "Most calls with the same arguments for one input; 3"),
    key("budget.tokens", Kind::Count, "Most tokens for one input"),
    key("budget.cost", Kind::Money, "Most US dollars for one input"),
    key("budget.time", Kind::Time, "Longest time for one input"),
    key("budget.session_tokens", Kind::Count, "Most tokens for a session"),
    key("budget.session_cost", Kind::Money, "Most US dollars for a session"),
    key("sessions.keep", Kind::Age, "How long sessions are kept since they were last used; 90d"),
    key("sessions.keep_max", Kind::Count, "Most sessions that are kept; 1000"),
    key("internal.reminder", Kind::Boolean, "Whether there are the tools for reminders that the program brings along; true"),
    key("browser.command", Kind::Text, "How plugins open web pages: a program that is given the address, or none; the desktop's browser"),
    key("packages.index", Kind::Text, "Address of the index that plugins get packages of a language from"),
    key("compile.wait", Kind::Time, "Longest wait of a start for plugins that are not compiled yet; 2s, and less where they are only listed"),
    key("compile.cpu_time", Kind::Time, "Most processor time of one compilation; 20s"),
    key("settings.*.*", Kind::Any, "What a plugin is told; its manifest says which keys it takes"),
];

/// The keys that a table must contain if it exists.
const REQUIRED: [&str; 4] =
    ["model.*.provider", "embedding.provider", "price.*.input", "price.*.output"];

/// The top-level keys of the file, each once.
pub fn top() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    ALL.iter().filter_map(move |key| {
        let top = key.path.split('.').next().unwrap_or(key.path);
        let is_new = top != last;
        last = top;
        is_new.then_some(top)
    })
}

/// The JSON Schema of `sallyport.toml`.
pub fn schema() -> Value {
    let mut root = object();
    for key in ALL {
        insert(&mut root, key.path, "", key);
    }
    let about = "The configuration of Sallyport, sallyport.toml.";
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sallyport.toml",
        "description": about,
    });
    if let (Value::Object(schema), Value::Object(root)) = (&mut schema, root) {
        schema.extend(root);
    }
    schema
}

fn object() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// Adds a key to the schema of the table that `path` starts in.
fn insert(table: &mut Value, path: &str, above: &str, key: Key) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let here = format!("{above}{name}");
    let place = match name {
        "*" => &mut table["additionalProperties"],
        name => &mut table["properties"][name],
    };
    if rest.is_empty() {
        *place = key.schema();
        if REQUIRED.contains(&here.as_str()) {
            match &mut table["required"] {
                Value::Array(names) => names.push(json!(name)),
                required => *required = json!([name]),
            }
        }
        return;
    }
    if !place.is_object() {
        *place = object();
    }
    insert(place, rest, &format!("{here}."), key);
}

impl Key {
    fn schema(self) -> Value {
        let mut schema = self.kind.schema();
        schema.insert("description".to_owned(), json!(self.about));
        Value::Object(schema)
    }
}

impl Kind {
    fn schema(self) -> Map<String, Value> {
        let schema = match self {
            Self::Text => json!({ "type": "string" }),
            Self::Plugin => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]*$" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::TextOrTexts => {
                json!({ "type": ["string", "array"], "items": { "type": "string" } })
            }
            Self::Word(Words::Providers) => json!({ "anyOf": [
                { "enum": Words::Providers.all() },
                { "type": "string", "pattern": format!("^{PLUGIN_PREFIX}[a-z][a-z0-9_-]*$") },
            ] }),
            Self::Word(words) => json!({ "enum": words.all() }),
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

impl Words {
    fn all(self) -> Vec<&'static str> {
        match self {
            Self::Providers => provider::ALL.map(|provider| provider.name).to_vec(),
            Self::Efforts => EFFORTS.map(|(word, _)| word).to_vec(),
            Self::ToolCallings => TOOL_CALLINGS.map(|(word, _)| word).to_vec(),
            Self::Memories => MEMORIES.map(|(word, _)| word).to_vec(),
            Self::EditModes => EDIT_MODES.map(|(word, _)| word).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Env, FileConfig};

    fn sample(kind: Kind) -> &'static str {
        match kind {
            Kind::Text | Kind::TextOrTexts | Kind::Plugin => "'x'",
            Kind::Texts => "['x']",
            Kind::Word(words) => match words {
                Words::Providers => "'ollama'",
                Words::Efforts => "'low'",
                Words::ToolCallings => "'json'",
                Words::Memories => "'summary'",
                Words::EditModes => "'vi'",
            },
            Kind::Boolean => "true",
            Kind::Amount | Kind::Money => "0.5",
            Kind::Count => "7",
            Kind::Time => "'10s'",
            Kind::Age => "'90d'",
            Kind::Any => "[1]",
        }
    }

    fn parse(text: &str) -> Result<FileConfig, String> {
        FileConfig::parse("c", text, &Env::of([])).map_err(|error| error.to_string())
    }

    /// The keys that a table requires besides the one under test.
    fn beside(key: Key) -> String {
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
            if key.kind != Kind::Any {
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
            let error =
                FileConfig::parse("c", &format!("{required}{table}zzzzzz = 1"), &Env::of([]))
                    .unwrap_err();
            let known: Vec<&str> = match table {
                "" => top().collect(),
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
        let schema = schema();
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
            assert_eq!(found["description"], key.about);
        }
        assert_eq!(
            schema["properties"]["model"]["additionalProperties"]["required"][0],
            "provider"
        );
        assert_eq!(schema["additionalProperties"], false);
    }
}
