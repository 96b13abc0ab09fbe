//! JSON Schemas that every model provider accepts, generated from types.
//!
//! Providers support different parts of JSON Schema. The schemas made here only use the common
//! part: no `$schema`, no titles, no number formats, and no references except in recursive types.

use std::marker::PhantomData;

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value};

/// Returns the schema of a tool's arguments, with a `type` (`object` by default) and `properties`.
pub fn parameters<T: JsonSchema>() -> Value {
    let mut schema = plain::<T>(SchemaSettings::draft2020_12().for_deserialize());
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    // The tool's own doc comment describes the whole; a second text would only cost tokens.
    schema.remove("description");
    Value::Object(schema)
}

/// Joins the lines of a doc comment into paragraphs. Keeps list items and indented lines as lines.
pub fn prose(doc: &str) -> String {
    let mut text = String::new();
    for line in doc.lines().map(str::trim_end) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        let starts_a_line = line.starts_with([' ', '-', '*', '|', '#', '`']) || line.is_empty();
        if !text.is_empty() {
            text.push(if starts_a_line || text.ends_with('\n') { '\n' } else { ' ' });
        }
        text.push_str(line);
    }
    text.trim().to_owned()
}

/// Finds the schema of the data that a tool returns.
///
/// Rust cannot test whether a type implements a trait, but method lookup tries a type before a
/// reference to it: [`Described`] is found for types with a schema, [`Undescribed`] for all others.
pub struct Returns<T>(PhantomData<T>);

impl<T> Returns<T> {
    /// The value that represents the type.
    pub const TYPE: Self = Self(PhantomData);
}

/// Return data with a schema.
pub trait Described {
    /// Returns the schema if it is an object schema, because hosts accept no other for structured
    /// data.
    fn output(&self) -> Option<Value>;
}

/// Return data without a schema.
pub trait Undescribed {
    /// Returns `None`.
    fn output(&self) -> Option<Value>;
}

impl<T: JsonSchema> Described for Returns<T> {
    fn output(&self) -> Option<Value> {
        let schema = plain::<T>(SchemaSettings::draft2020_12().for_serialize());
        (schema.get("type")? == "object").then_some(Value::Object(schema))
    }
}

impl<T> Undescribed for &Returns<T> {
    fn output(&self) -> Option<Value> {
        None
    }
}

fn plain<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(simplify).transform(&mut schema);
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn simplify(schema: &mut Schema) {
    schema.remove("title");
    if is_number(schema) {
        schema.remove("format");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = prose(text);
    }
}

/// Whether a schema is of a number. An optional number has two types, its own and `null`.
fn is_number(schema: &Schema) -> bool {
    let number = |ty: &Value| ty == "number" || ty == "integer";
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(number),
        Some(ty) => number(ty),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// Searches; this text belongs to the struct.
    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Search {
        /// What to look for,
        /// in plain words.
        query: String,
        limit: Option<u8>,
        #[serde(default)]
        exact: bool,
        weight: f64,
        order: Option<Order>,
        title: Vec<Range>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only the schema is looked at")]
    enum Order {
        Newest,
        Best,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Range {
        from: i64,
    }

    #[derive(JsonSchema)]
    #[serde(tag = "by")]
    #[expect(dead_code, reason = "only the schema is looked at")]
    enum Find {
        Id { id: u32 },
    }

    #[test]
    fn parameters_are_plain_object_schemas() {
        let search = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "query": { "type": "string", "description": "What to look for, in plain words." },
                "limit": { "type": ["integer", "null"], "minimum": 0, "maximum": 255 },
                "exact": { "type": "boolean", "default": false },
                "weight": { "type": "number" },
                "order": { "type": ["string", "null"], "enum": ["newest", "best", null] },
                "title": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": { "from": { "type": "integer" } },
                        "required": ["from"],
                    },
                },
            },
            "required": ["query", "weight", "title"],
        });
        assert_eq!(parameters::<Search>(), search);
        assert_eq!(
            parameters::<crate::arguments::NoArguments>(),
            json!({"type": "object", "properties": {}})
        );
        assert_eq!(parameters::<Find>()["type"], "object");
    }

    #[test]
    fn output_is_described_when_it_is_an_object_with_a_schema() {
        struct Opaque;
        let range = json!({
            "type": "object",
            "properties": { "from": { "type": "integer" } },
            "required": ["from"],
        });
        assert_eq!(Returns::<Range>::TYPE.output(), Some(range));
        assert_eq!(Returns::<BTreeMap<String, u8>>::TYPE.output().unwrap()["type"], "object");
        assert_eq!(Returns::<u8>::TYPE.output(), None);
        assert_eq!(Returns::<Value>::TYPE.output(), None);
        assert_eq!((&Returns::<Opaque>::TYPE).output(), None);
    }

    #[test]
    fn doc_comments_become_paragraphs() {
        for (doc, want) in [
            (" One line.", "One line."),
            (" Two\n lines.", "Two lines."),
            (" First.\n\n Second\n one.", "First.\n\nSecond one."),
            (" A list:\n - one\n - two", "A list:\n- one\n- two"),
            ("", ""),
        ] {
            assert_eq!(prose(doc), want, "{doc:?}");
        }
    }
}
