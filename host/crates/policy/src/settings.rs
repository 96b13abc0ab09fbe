//! The settings of a plugin, as its manifest declares them.
//!
//! Each `[settings.NAME]` table is the JSON Schema of one setting, written in TOML. Only the
//! keywords listed here are accepted, so a misspelt limit is an error and not a missing limit.

use serde_json::{Map, Value, json};

use crate::{
    document::{TomlItem, TomlSection},
    source::SourceError,
};

/// Longest name of a setting, in bytes.
const SETTING_NAME_BYTES_MAX: usize = 64;

const TYPES: [(&str, &str); 6] = [
    ("string", "string"),
    ("integer", "integer"),
    ("number", "number"),
    ("boolean", "boolean"),
    ("array", "array"),
    ("object", "object"),
];

type Reader = fn(TomlItem<'_>) -> Result<Value, SourceError>;

/// The keywords that are copied into the schema. `required`, `items` and `properties` are handled
/// separately.
const KEYWORDS: [(&str, Reader); 19] = [
    ("type", |item| item.read_choice(&TYPES).map(Value::from)),
    ("title", |item| item.read_string().map(Value::from)),
    ("description", |item| item.read_string().map(Value::from)),
    ("default", |item| item.read_json()),
    ("const", |item| item.read_json()),
    ("enum", |item| item.read_list(TomlItem::read_json).map(Value::from)),
    ("pattern", |item| item.read_string().map(Value::from)),
    ("format", |item| item.read_string().map(Value::from)),
    ("minimum", read_number),
    ("maximum", read_number),
    ("exclusiveMinimum", read_number),
    ("exclusiveMaximum", read_number),
    ("multipleOf", read_number),
    ("minLength", read_length),
    ("maxLength", read_length),
    ("minItems", read_length),
    ("maxItems", read_length),
    ("uniqueItems", |item| item.read_bool().map(Value::from)),
    ("additionalProperties", |item| item.read_bool().map(Value::from)),
];

/// A plugin's settings as one JSON Schema of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsSchema {
    schema: Value,
}

struct SettingProperty {
    name: String,
    schema: Map<String, Value>,
    is_required: bool,
}

impl SettingsSchema {
    /// Returns the schema of a plugin without settings.
    pub fn empty() -> Self {
        Self { schema: Value::Object(object_schema(Vec::new())) }.deny_unknown()
    }

    pub(crate) fn from_toml(root: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        let properties = root.read_named_items("settings", SettingProperty::from_toml)?;
        Ok(Self { schema: Value::Object(object_schema(properties)) }.deny_unknown())
    }

    /// Refuses settings that the schema does not declare.
    fn deny_unknown(mut self) -> Self {
        self.schema["additionalProperties"] = json!(false);
        self
    }

    /// The schema of all settings: an object without additional properties.
    pub fn json_schema(&self) -> &Value {
        &self.schema
    }

    /// Returns the given settings, with defaults for the others.
    pub fn with_defaults(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let mut all = given.clone();
        for (name, schema) in self.properties() {
            if let (false, Some(default)) = (all.contains_key(name), schema.get("default")) {
                all.insert(name.clone(), default.clone());
            }
        }
        all
    }

    /// Returns the names of the required settings that have neither a value nor a default.
    pub fn missing_settings(&self, given: &Map<String, Value>) -> Vec<&str> {
        let all = self.with_defaults(given);
        let required = self.schema["required"].as_array().into_iter().flatten();
        required.filter_map(Value::as_str).filter(|name| !all.contains_key(*name)).collect()
    }

    pub(crate) fn setting_names(&self) -> impl Iterator<Item = &str> {
        self.properties().map(|(name, _)| name.as_str())
    }

    pub(crate) fn is_string_setting(&self, name: &str) -> bool {
        self.schema["properties"][name]["type"] == "string"
    }

    fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema["properties"].as_object().into_iter().flatten()
    }
}

impl SettingProperty {
    fn from_toml(name: TomlItem<'_>, table: TomlItem<'_>) -> Result<Self, SourceError> {
        let name = read_setting_name(name)?;
        table.read_section(|section| {
            let is_required =
                section.read_optional("required", TomlItem::read_bool)?.unwrap_or(false);
            Ok(Self { name, schema: read_schema(section)?, is_required })
        })
    }
}

fn object_schema(properties: Vec<SettingProperty>) -> Map<String, Value> {
    let required = properties.iter().filter(|property| property.is_required);
    let required: Vec<Value> = required.map(|property| json!(property.name)).collect();
    let pairs = properties.into_iter().map(|p| (p.name, Value::Object(p.schema)));
    let properties = Value::Object(pairs.collect());
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties),
        ("required".to_owned(), Value::Array(required)),
    ])
}

fn read_schema(section: &mut TomlSection<'_>) -> Result<Map<String, Value>, SourceError> {
    let mut schema = match section
        .read_optional("properties", |item| item.read_named_items(SettingProperty::from_toml))?
    {
        Some(properties) => object_schema(properties),
        None => Map::new(),
    };
    if let Some(items) = section.read_optional("items", |item| item.read_section(read_schema))? {
        schema.insert("items".to_owned(), Value::Object(items));
    }
    for (keyword, read) in KEYWORDS {
        let Some(item) = section.take_item(keyword) else { continue };
        let place = item.place();
        let value = read(item)?;
        if keyword == "default" && !matches_schema_type(&schema, &value) {
            return Err(place.into_error("the default is not a value that the setting may have"));
        }
        schema.insert(keyword.to_owned(), value);
    }
    Ok(schema)
}

/// Whether a default has the type of its setting. The keyword `type` is read before `default`.
fn matches_schema_type(schema: &Map<String, Value>, value: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(_) | None => true,
    }
}

fn read_setting_name(item: TomlItem<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let name = item.read_string()?;
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if plain && !name.is_empty() && name.len() <= SETTING_NAME_BYTES_MAX {
        return Ok(name);
    }
    let error =
        place.into_error(format!("{} is not a setting's name", crate::source::quoted(&name)));
    Err(error.with_hint("use up to 64 letters, digits, '_' and '-'"))
}

fn read_number(item: TomlItem<'_>) -> Result<Value, SourceError> {
    let place = item.place();
    let value = item.read_json()?;
    if value.is_number() { Ok(value) } else { Err(place.into_error("this keyword takes a number")) }
}

fn read_length(item: TomlItem<'_>) -> Result<Value, SourceError> {
    item.read_count(0..=u32::MAX).map(Value::from)
}
