//! Reads a tool's parameters from its JSON Schema.
//!
//! Schemas have many origins: they use references, unions and the type names of other languages.
//! Each parameter is reduced to one [`ParameterKind`], which determines where a sentence may
//! contain its value.

use sallyport_lexical::{contains_word, split_into_words};
use serde_json::Value;

/// Most references that are followed. More are taken for a cycle.
const REFERENCES_MAX: usize = 8;

/// Most parameters of a tool that are filled.
const PARAMS_MAX: usize = 64;

/// Most values of a choice that are compared.
const CHOICES_MAX: usize = 256;

/// The kind of a parameter, which determines where its value may be found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParameterKind<'a> {
    /// A constant.
    Fixed(&'a Value),
    Url,
    Path,
    /// One of these values.
    Choice(Vec<&'a Value>),
    Boolean,
    /// A duration, as a number of units; the unit is given in milliseconds.
    Duration(u64),
    /// One or several points in time, in words.
    Moment,
    Number,
    /// A city, a country or a time zone.
    Place,
    /// Source code.
    Code,
    /// A text to write or send.
    Content,
    /// A name that the user gives to something.
    Label,
    /// A search text, or any other text.
    Text,
    /// A list or an object, which no sentence contains.
    Other,
}

/// One parameter of a tool.
#[derive(Debug, Clone)]
pub(super) struct ToolParameter<'a> {
    pub(super) name: &'a str,
    /// The words of its name.
    pub(super) words: Vec<String>,
    /// The author's description.
    pub(super) description: &'a str,
    /// The schema, with references resolved.
    pub(super) schema: &'a Value,
    pub(super) kind: ParameterKind<'a>,
    pub(super) is_required: bool,
}

/// Returns the parameters of an object schema, in the order in which they are filled.
pub(super) fn parse_parameters(schema: &Value) -> Vec<ToolParameter<'_>> {
    let required: Vec<&str> =
        array_items(schema, "required").iter().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().take(PARAMS_MAX);
    let mut params: Vec<ToolParameter<'_>> = properties
        .map(|(name, own)| ToolParameter::new(name, own, schema, required.contains(&name.as_str())))
        .collect();
    params.sort_by_key(|param| (param.kind.fill_rank(), !param.is_required));
    params
}

impl ParameterKind<'_> {
    /// Values that are recognizable by their form are filled first, so that the rest of the
    /// sentence is left for the others.
    fn fill_rank(&self) -> u8 {
        match self {
            Self::Fixed(_) | Self::Url | Self::Path => 0,
            Self::Choice(_) | Self::Boolean => 1,
            Self::Duration(_) | Self::Moment => 2,
            Self::Number => 3,
            Self::Place => 4,
            Self::Code | Self::Content => 5,
            Self::Label => 6,
            Self::Text | Self::Other => 7,
        }
    }
}

impl<'a> ToolParameter<'a> {
    fn new(name: &'a str, schema: &'a Value, root: &'a Value, is_required: bool) -> Self {
        let description = schema.get("description").and_then(Value::as_str);
        let schema = resolve_schema(schema, root);
        let description = description.or_else(|| schema.get("description")?.as_str()).unwrap_or("");
        let words: Vec<String> = split_into_words(name).collect();
        let kind = parameter_kind(&words, description, schema);
        Self { name, words, description, schema, kind, is_required }
    }
}

/// Follows references and picks the first member of a union that is not null.
fn resolve_schema<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..REFERENCES_MAX {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|at| root.pointer(at.strip_prefix('#')?));
        let member = || {
            let unions =
                ["anyOf", "oneOf", "allOf"].iter().flat_map(|key| array_items(schema, key));
            let mut members = unions.filter(|member| member.get("type") != Some(&"null".into()));
            members.next().filter(|_| union_constants(schema).is_empty())
        };
        match target.or_else(member) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn parameter_kind<'a>(words: &[String], description: &str, schema: &'a Value) -> ParameterKind<'a> {
    if let Some(value) = schema.get("const") {
        return ParameterKind::Fixed(value);
    }
    let mut choices: Vec<&Value> = array_items(schema, "enum").iter().take(CHOICES_MAX).collect();
    choices.extend(union_constants(schema));
    choices.retain(|choice| !choice.is_null());
    if !choices.is_empty() {
        return ParameterKind::Choice(choices);
    }
    match type_name(schema).as_str() {
        "boolean" | "bool" => ParameterKind::Boolean,
        "integer" | "int" | "long" | "number" | "float" | "double" => {
            number_kind(words, description)
        }
        "array" | "list" | "tuple" | "set" | "object" | "dict" | "map" => ParameterKind::Other,
        _ if schema.get("properties").is_some() => ParameterKind::Other,
        _ => text_kind(words, description, schema),
    }
}

/// Returns the name of the type in lower case; of several, the first that is not null.
fn type_name(schema: &Value) -> String {
    let names = match schema.get("type") {
        Some(Value::Array(names)) => names.as_slice(),
        Some(name) => std::slice::from_ref(name),
        None => &[],
    };
    let name = names.iter().filter_map(Value::as_str).find(|name| *name != "null");
    name.unwrap_or("").to_lowercase()
}

/// Returns the values of a union of constants, which some authors write for a choice.
fn union_constants(schema: &Value) -> Vec<&Value> {
    let members =
        ["oneOf", "anyOf"].iter().flat_map(|key| array_items(schema, key)).take(CHOICES_MAX);
    let constants: Option<Vec<&Value>> = members.map(|member| member.get("const")).collect();
    constants.unwrap_or_default()
}

fn number_kind<'a>(names: &[String], description: &str) -> ParameterKind<'a> {
    // A single letter is a variable of a formula, not a unit.
    let unit_in = |word: &str| unit_ms(word).filter(|_| word.len() > 1);
    let is_called = |name: &str| names.iter().any(|word| word == name);
    let by_name = names.iter().find_map(|word| unit_in(word));
    let is_time = ["duration", "delay", "timeout", "interval"].into_iter().any(is_called);
    let by_text = || split_into_words(description).find_map(|word| unit_in(&word)).unwrap_or(1_000);
    match by_name.or_else(|| is_time.then(by_text)) {
        Some(unit_ms) => ParameterKind::Duration(unit_ms),
        None => ParameterKind::Number,
    }
}

fn unit_ms(word: &str) -> Option<u64> {
    Some(match word {
        "ms" | "millisecond" => 1,
        "sec" | "second" => 1_000,
        "min" | "minute" => 60_000,
        "hr" | "hour" => 3_600_000,
        "day" => 86_400_000,
        _ => return None,
    })
}

fn text_kind<'a>(names: &[String], description: &str, schema: &Value) -> ParameterKind<'a> {
    let called = |known: &str| names.iter().any(|word| contains_word(known, word));
    let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
    if matches!(format, "uri" | "url" | "iri") || called("url uri website link") {
        return ParameterKind::Url;
    }
    let rows = [
        ("query search keyword q term", ParameterKind::Text),
        ("path file filename folder directory dir", ParameterKind::Path),
        (PLACES, ParameterKind::Place),
        ("code source script expression", ParameterKind::Code),
        ("content text body message note description", ParameterKind::Content),
        ("label title", ParameterKind::Label),
        ("when moment due", ParameterKind::Moment),
    ];
    let described = [
        ("url uri", ParameterKind::Url),
        ("path", ParameterKind::Path),
        ("city iana", ParameterKind::Place),
    ];
    let speaks_of =
        |known: &str| split_into_words(description).any(|word| contains_word(known, &word));
    let by_name = rows.into_iter().find(|(names, _)| called(names));
    by_name
        .or_else(|| described.into_iter().find(|(words, _)| speaks_of(words)))
        .map_or(ParameterKind::Text, |(_, kind)| kind)
}

/// Parameter names that ask for a place.
const PLACES: &str = "location city place country region town timezone zone destination address";

fn array_items<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
