//! Phrases the results of tools in plain text.

use serde_json::{Map, Value};

use super::help;
use crate::chat::ToolResultMessage;

/// Longest text about one result, in characters. The tool's complete output is kept elsewhere.
const CHARS_MAX: usize = 4_000;

/// Deepest level of nested values that is shown.
const DEPTH_MAX: usize = 5;

/// The fence around text of several lines, so that none of it is read as Markdown. Text that
/// contains such a fence is rendered wrongly, but completely.
const FENCE: &str = "````";

/// Fields whose text alone is enough for the user, the most informative first.
const TELLING: &[&str] = &["speech", "summary", "text", "message", "answer", "description"];

/// Phrases several results in their order.
pub(super) fn phrase_results(results: &[&ToolResultMessage]) -> String {
    let texts: Vec<String> = results.iter().map(|result| phrase_result(result)).collect();
    texts.join("\n\n")
}

fn phrase_result(result: &ToolResultMessage) -> String {
    let value: Value = match serde_json::from_str(&result.content) {
        Ok(value) => value,
        Err(_) => Value::String(result.content.clone()),
    };
    let name = help::display_tool_name(&result.name);
    match read_failure(&value) {
        Some(failure) => failure.describe_failure(&name),
        None if result.failed && is_nested(&value) => {
            truncate_text(format!("{name} did not work:\n{}", phrase_value(&value)))
        }
        None if result.failed => {
            truncate_text(format!("{name} did not work: {}", phrase_value(&value)))
        }
        None => truncate_text(phrase_value(&value)),
    }
}

/// A call that did not complete.
struct ToolCallFailure<'v> {
    outcome: &'v str,
    error: &'v str,
    hint: Option<&'v str>,
}

fn read_failure(value: &Value) -> Option<ToolCallFailure<'_>> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let outcome = text("outcome")?;
    let known = ["denied", "failed", "invalid-arguments", "timed-out", "cancelled"];
    let error = text("error").filter(|_| known.contains(&outcome))?;
    Some(ToolCallFailure { outcome, error, hint: text("hint") })
}

impl ToolCallFailure<'_> {
    /// Returns the message for the user. The hint may contain lines to paste, so it stays unchanged
    /// and is never cut.
    fn describe_failure(&self, name: &str) -> String {
        let what = match self.outcome {
            "denied" => format!("{name} was not allowed"),
            "invalid-arguments" => format!("{name} could not use what I gave it"),
            "timed-out" => format!("{name} took too long"),
            "cancelled" => format!("{name} was stopped"),
            _ => format!("{name} did not work"),
        };
        let message = truncate_text(format!("{what}: {}", self.error));
        match self.hint {
            Some(hint) => format!("{message}\n{hint}"),
            None => message,
        }
    }
}

fn phrase_value(value: &Value) -> String {
    match value {
        Value::Null => "Done.".to_owned(),
        Value::Object(fields) if fields.is_empty() => "Done.".to_owned(),
        Value::Array(items) if items.is_empty() => "There is nothing.".to_owned(),
        Value::Object(fields) => phrase_object(fields),
        Value::Array(_) => format_list(value, 0).trim_end().to_owned(),
        plain => format_scalar(plain),
    }
}

/// Returns one informative text if there is one. Data with further content gives both, in this
/// order.
fn phrase_object(fields: &Map<String, Value>) -> String {
    let text = |key: &&str| {
        fields.get(*key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    };
    if let (2, Some(data), Some(Value::Array(content))) =
        (fields.len(), fields.get("data"), fields.get("content"))
    {
        let parts = content.iter().map(phrase_part);
        let all: Vec<String> = std::iter::once(phrase_value(data)).chain(parts).collect();
        return all.join("\n\n");
    }
    match TELLING.iter().find_map(text) {
        Some(text) => text.trim().to_owned(),
        None => format_list(&Value::Object(fields.clone()), 0).trim_end().to_owned(),
    }
}

/// Phrases a part of the content that accompanies a tool's data.
fn phrase_part(part: &Value) -> String {
    match part.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => format_list(part, 0).trim_end().to_owned(),
    }
}

/// Writes a value as a list that reads the same in Markdown and in a plain terminal. Fields with
/// empty text are left out.
fn format_list(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(fields) => {
            let filled = fields.iter().filter(|(_, value)| **value != Value::String(String::new()));
            filled
                .map(|(key, value)| format_entry(&format!("{}:", format_key(key)), value, depth))
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| format_entry("", item, depth)).collect(),
        plain => format!("{}\n", format_scalar(plain)),
    }
}

/// One entry of a list.
fn format_entry(lead: &str, value: &Value, depth: usize) -> String {
    let begin = format!("{}- {lead}", "  ".repeat(depth));
    match value {
        Value::Object(fields) if lead.is_empty() && fields.values().all(is_single_line) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{}: {}", format_key(key), format_scalar(value))
            };
            let pairs: Vec<String> = fields.iter().map(pair).collect();
            format!("{begin}{}\n", pairs.join(", "))
        }
        nested if is_nested(nested) && depth == DEPTH_MAX => format!("{} …\n", begin.trim_end()),
        nested if is_nested(nested) => {
            format!("{}\n{}", begin.trim_end(), format_list(nested, depth + 1))
        }
        Value::String(text) if !is_single_line(value) => {
            let indent = "  ".repeat(depth + 1);
            let body = text.trim_end().replace('\n', &format!("\n{indent}"));
            format!("{}\n{indent}{FENCE}\n{indent}{body}\n{indent}{FENCE}\n", begin.trim_end())
        }
        plain if lead.is_empty() => format!("{begin}{}\n", format_scalar(plain)),
        plain => format!("{begin} {}\n", format_scalar(plain)),
    }
}

/// Returns true if a value fits on a line.
fn is_single_line(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim_end().contains('\n'),
        other => !is_nested(other),
    }
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn format_scalar(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(_) | Value::Object(_) => "none".to_owned(),
    }
}

fn format_key(key: &str) -> String {
    key.replace('_', " ")
}

fn truncate_text(text: String) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}
