//! Checks whether a provider accepts a schema unchanged.
//!
//! Every rule here is one for which a live service refuses a whole request. A schema that passes is
//! sent as its author wrote it.

use sallyport_lexical::contains_word;
use serde_json::{Map, Value};

use super::SchemaDialect;

/// Most levels of a schema. Services that decode JSON into messages of their own fail at about 100
/// levels of JSON. Each level of a schema takes two of them, and the request some more.
const LEVELS_MAX: usize = 24;

/// Longest property name where names are limited.
const NAME_CHARS_MAX: usize = 64;

/// Keywords that are not allowed at the top of a tool's parameters.
const FORBIDDEN_AT_ROOT: &str = "\
    $ref $dynamicRef allOf anyOf const enum if not oneOf unevaluatedProperties";

/// Keywords that every provider knows or ignores.
const KNOWN_KEYWORDS: &str = "\
    $anchor $defs $id $ref $schema additionalProperties anyOf default description enum example \
    format items maxItems maxLength maxProperties maximum minItems minLength minProperties \
    minimum nullable oneOf pattern prefixItems properties propertyOrdering required title type";

/// Formats that every provider knows.
const FORMATS: &str = "\
    date date-time double duration email float hostname int32 int64 ipv4 ipv6 time";

/// Keywords whose schema may be `true` or `false`.
const BOOLEAN_SCHEMA_KEYWORDS: &str = "\
    additionalItems additionalProperties unevaluatedItems unevaluatedProperties";

/// Keywords that contain one schema.
const SINGLE_SCHEMA_KEYWORDS: &str = "\
    additionalItems additionalProperties contains contentSchema else if items not \
    propertyNames then unevaluatedItems unevaluatedProperties";

/// Keywords that contain a list of schemas.
const SCHEMA_LIST_KEYWORDS: &str = "\
    allOf anyOf items oneOf prefixItems";

/// Keywords that contain schemas by name.
const NAMED_SCHEMA_KEYWORDS: &str = "\
    $defs definitions dependentSchemas patternProperties properties";

/// Returns the direct subschemas of a schema, each with its keyword.
pub(super) fn subschemas(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let keywords = schema.as_object().into_iter().flatten();
    keywords.flat_map(|(keyword, value)| {
        let keyword = keyword.as_str();
        let nested: Vec<&Value> = match value {
            Value::Array(list) if contains_word(SCHEMA_LIST_KEYWORDS, keyword) => {
                list.iter().collect()
            }
            Value::Object(named) if contains_word(NAMED_SCHEMA_KEYWORDS, keyword) => {
                named.values().collect()
            }
            Value::Object(_) | Value::Bool(_) if contains_word(SINGLE_SCHEMA_KEYWORDS, keyword) => {
                vec![value]
            }
            _ => Vec::new(),
        };
        nested.into_iter().map(move |inner| (keyword, inner))
    })
}

/// Returns true if a tool's parameters can be sent unchanged.
pub(super) fn is_accepted_schema(parameters: &Value, dialect: SchemaDialect) -> bool {
    let Some(top) = parameters.as_object() else { return false };
    top.get("type").and_then(Value::as_str) == Some("object")
        && top.get("properties").is_some_and(Value::is_object)
        && !top.keys().any(|keyword| contains_word(FORBIDDEN_AT_ROOT, keyword))
        && is_node_accepted(parameters, dialect, 0)
}

/// Returns true if every provider accepts the property name.
pub(super) fn is_property_name(name: &str) -> bool {
    let is_safe = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_safe)
}

/// Returns true if every provider knows the format.
pub(super) fn is_known_format(format: &Value) -> bool {
    format.as_str().is_some_and(|format| contains_word(FORMATS, format))
}

/// Returns true if every provider accepts the value in an `enum`.
pub(super) fn is_plain_choice(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| !text.is_empty())
}

/// Returns true if the pattern matches a whole text, from `^` to `$`.
pub(super) fn is_anchored_pattern(pattern: &Value) -> bool {
    pattern.as_str().is_some_and(|text| text.starts_with('^') && text.ends_with('$'))
}

/// Returns true if a `type` names `wanted`, alone or among others.
pub(super) fn has_type_name(types: &Value, type_name: &str) -> bool {
    match types {
        Value::String(one) => one == type_name,
        Value::Array(several) => several.iter().any(|one| one == type_name),
        _ => false,
    }
}

fn is_node_accepted(node: &Value, dialect: SchemaDialect, level: usize) -> bool {
    let Some(fields) = node.as_object() else { return false };
    level < LEVELS_MAX
        && has_item_schema(fields)
        && !["exclusiveMinimum", "exclusiveMaximum"]
            .iter()
            .any(|keyword| fields.get(*keyword).is_some_and(Value::is_boolean))
        && is_in_dialect(fields, dialect)
        && subschemas(node).all(|(keyword, inner)| {
            (inner.is_boolean() && contains_word(BOOLEAN_SCHEMA_KEYWORDS, keyword))
                || is_node_accepted(inner, dialect, level + 1)
        })
}

/// Returns true unless a list lacks a single schema for its items.
fn has_item_schema(fields: &Map<String, Value>) -> bool {
    match fields.get("items") {
        Some(items) => items.is_object(),
        None => !fields.get("type").is_some_and(|types| has_type_name(types, "array")),
    }
}

fn is_in_dialect(fields: &Map<String, Value>, dialect: SchemaDialect) -> bool {
    let refers = fields.contains_key("$ref") || fields.contains_key("$dynamicRef");
    let properties = fields.get("properties").and_then(Value::as_object);
    let mut names = properties.into_iter().flat_map(Map::keys);
    let is_whole = fields.get("pattern").is_none_or(is_anchored_pattern);
    let has_references = dialect.ignores_references && refers;
    let has_odd_names = dialect.limits_names && names.any(|name| !is_property_name(name));
    let has_odd_patterns = dialect.wants_whole_patterns && !is_whole;
    let has_odd_keywords = dialect.limits_keywords && !has_known_keywords(fields);
    !(has_references || has_odd_names || has_odd_patterns || has_odd_keywords)
}

fn has_known_keywords(fields: &Map<String, Value>) -> bool {
    let refers = fields.contains_key("$ref");
    let choices = fields.get("enum").and_then(Value::as_array);
    fields.keys().all(|key| contains_word(KNOWN_KEYWORDS, key) && (!refers || key.starts_with('$')))
        && choices.into_iter().flatten().all(is_plain_choice)
        && fields.get("format").is_none_or(is_known_format)
        && has_required_properties(fields)
}

fn has_required_properties(fields: &Map<String, Value>) -> bool {
    let has = |name: &Value| {
        let properties = fields.get("properties");
        name.as_str().is_some_and(|name| properties.is_some_and(|all| all.get(name).is_some()))
    };
    fields.get("required").and_then(Value::as_array).into_iter().flatten().all(has)
}
