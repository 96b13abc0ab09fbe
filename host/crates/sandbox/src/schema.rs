//! JSON Schemas of plugins, and the validation of values.
//!
//! A schema is untrusted: references to other documents are never fetched, and patterns run in an
//! engine whose time is linear in the text for any pattern.

use std::thread;

use jsonschema::{PatternOptions, ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use crate::schema_cost;

/// Most errors that one check reports. A model corrects a few at a time.
const ERRORS_MAX: usize = 5;

/// Longest error in characters. The value that it quotes may be large.
const ERROR_CHARS_MAX: usize = 300;

/// Memory limit of one pattern's automaton, in bytes. An address or a date needs a few kilobytes.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// Begins to build, in a thread of its own, the validator that checks schemas themselves. The first
/// schema that is compiled needs it, and building it takes longer than a small call.
pub fn prepare_schemas() {
    let build = || jsonschema::draft202012::meta::is_valid(&Value::Bool(true));
    // Without a thread, the first schema waits for it.
    drop(thread::Builder::new().name("schemas".to_owned()).spawn(build));
}

/// A compiled schema.
#[derive(Debug)]
pub struct CompiledSchema(jsonschema::Validator);

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// It is not a JSON Schema, refers to another document, has a pattern that cannot run in
    /// bounded time, or needs too much work. The message states which.
    pub fn new(schema: &Value) -> Result<Self, String> {
        schema_cost::check_schema_cost(schema)?;
        let patterns =
            PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
        jsonschema::options()
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .build(schema)
            .map(Self)
            .map_err(|error| format_schema_error(&error))
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// The first few errors, each with its place in the value.
    pub fn check_value(&self, value: &Value) -> Result<(), Vec<String>> {
        if self.0.is_valid(value) {
            return Ok(());
        }
        Err(self.0.iter_errors(value).take(ERRORS_MAX).map(|e| format_schema_error(&e)).collect())
    }
}

fn format_schema_error(error: &ValidationError<'_>) -> String {
    let text: String = error_text(error).chars().take(ERROR_CHARS_MAX).collect();
    match error.instance_path().as_str() {
        "" => text,
        place => format!("{place}: {text}"),
    }
}

/// What is wrong with a value. Of several forms that a value may have, the reason of each.
fn error_text(error: &ValidationError<'_>) -> String {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return error.to_string();
    };
    let place = error.instance_path().as_str();
    let mut reasons: Vec<String> = Vec::new();
    for reason in context.iter().take(ERRORS_MAX).filter_map(|errors| errors.first()) {
        let text = error_text(reason);
        let text = match reason.instance_path().as_str().strip_prefix(place) {
            Some(inner) if !inner.is_empty() => format!("{inner}: {text}"),
            _ => text,
        };
        if !reasons.contains(&text) {
            reasons.push(text);
        }
    }
    match reasons.is_empty() {
        true => error.to_string(),
        false => reasons.join(", and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn complaints_name_their_place() {
        let schema = json!({
            "type": "object",
            "properties": { "city": {}, "days": { "type": "integer", "maximum": 7 } },
            "required": ["city"],
            "additionalProperties": false
        });
        let schema = CompiledSchema::new(&schema).unwrap();
        assert_eq!(schema.check_value(&json!({ "city": "Paris", "days": 3 })), Ok(()));
        let complaints = schema.check_value(&json!({ "days": 9, "x": 1 })).unwrap_err().join("\n");
        for part in ["/days", "city", "x"] {
            assert!(complaints.contains(part), "{complaints}");
        }
    }

    #[test]
    fn each_form_that_a_value_may_have_gives_its_reason() {
        let integer =
            json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "minLength": 1 }] });
        let shape = json!({ "oneOf": [
            { "type": "object", "properties": { "side": { "type": "number" } }, "required": ["side"] },
            { "type": "null" },
        ] });
        let schema = json!({ "properties": { "count": integer, "shape": shape } });
        let schema = CompiledSchema::new(&schema).unwrap();
        for (value, complaint) in [
            (
                json!({ "count": 1.5 }),
                r#"/count: 1.5 is not of type "integer", and 1.5 is not of type "string""#,
            ),
            (
                json!({ "count": "" }),
                r#"/count: "" is not of type "integer", and "" is shorter than 1 character"#,
            ),
            (
                json!({ "shape": { "side": "a" } }),
                r#"/shape: /side: "a" is not of type "number", and {"side":"a"} is not of type "null""#,
            ),
        ] {
            assert_eq!(schema.check_value(&value).unwrap_err(), [complaint]);
        }
    }

    #[test]
    fn a_64_bit_integer_keeps_its_last_digit() {
        let schema = CompiledSchema::new(&json!({ "maximum": 9_007_199_254_740_993_u64 })).unwrap();
        assert!(schema.check_value(&json!(9_007_199_254_740_993_u64)).is_ok());
        assert!(schema.check_value(&json!(9_007_199_254_740_994_u64)).is_err());
    }

    #[test]
    fn hostile_schemas_are_refused_or_bounded() {
        for bad in [
            json!({ "$ref": "https://evil.example/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "type": "dict" }),
            json!({ "pattern": "(?=a)b" }),
            json!({ "pattern": "(((a{1000}){1000}){1000})" }),
        ] {
            assert!(CompiledSchema::new(&bad).is_err(), "{bad}");
        }
        let bomb = CompiledSchema::new(&json!({ "pattern": "^(a+)+$" })).unwrap();
        assert!(bomb.check_value(&json!(format!("{}b", "a".repeat(10_000)))).is_err());
        let recursive = json!({ "type": "object", "properties": { "a": { "$ref": "#" } } });
        let mut value = json!({});
        for _ in 0..100 {
            value = json!({ "a": value });
        }
        assert!(CompiledSchema::new(&recursive).unwrap().check_value(&value).is_ok());
    }
}
