//! Follows a JSONPath (RFC 9535) into a result.
//!
//! The crate evaluates a path without a limit on its work, and a path is a small program: `$..*..*`
//! or `$[*,*][*,*]` multiply the nodes with each step. [`check_cost`] refuses the forms that
//! multiply, so that each step visits a node a few times at most. What a path selects is measured
//! before it is written, because `$..*` selects each node and then everything within it again.

use serde_json::Value;
use serde_json_path::JsonPath;

use super::{KEPT_BYTES_MAX, to_json_text};
use crate::memory::json_bytes;

/// Longest path, in bytes. It names some keys.
const PATH_BYTES_MAX: usize = 512;

/// Deepest nesting of brackets in a path: a filter within a selector, and groups in it. The parser
/// tries several readings of each group.
const NESTING_MAX: usize = 4;

/// Most references to the node that a filter checks. Comparing two of them may read everything
/// within the node, again for each node around it.
const FILTER_REFERENCES_MAX: usize = 8;

/// Returns the part of a JSON text at a path, as text: a single string as it is, otherwise JSON;
/// several parts as an array.
///
/// # Errors
///
/// The path is invalid or too costly, the text is not JSON, or nothing or too much is there; in
/// words for the model.
pub(super) fn follow_path(text: &str, path: &str) -> Result<String, String> {
    check_cost(path)?;
    let parsed = JsonPath::parse(path).map_err(|error| format!("`path` is not valid: {error}"))?;
    let value: Value = sallyport_contract::json::parse_json(text, KEPT_BYTES_MAX)
        .map_err(|error| format!("`path` needs a JSON result: {error}"))?;
    match parsed.query(&value).all().as_slice() {
        [] => Err("nothing is at this path".to_owned()),
        [Value::String(text)] => Ok(text.clone()),
        [part] => Ok(to_json_text(part)),
        parts if !fit_together(parts) => {
            Err("too much is at this path; name the part that you need".to_owned())
        }
        parts => Ok(to_json_text(parts)),
    }
}

/// Whether parts, which may contain each other, are together no longer than a kept result.
fn fit_together(parts: &[&Value]) -> bool {
    let mut left = KEPT_BYTES_MAX;
    parts.iter().all(|part| {
        let rest = left.checked_sub(json_bytes(part));
        left = rest.unwrap_or_default();
        rest.is_some()
    })
}

/// Refuses paths that would visit nodes again and again.
fn check_cost(path: &str) -> Result<(), String> {
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("`path` is longer than {PATH_BYTES_MAX} bytes"));
    }
    let plain = without_quoted(path);
    if plain.matches("..").count() > 1 {
        return Err("`path` may contain `..` once".to_owned());
    }
    if plain.contains(',') || plain.get(1..).is_some_and(|rest| rest.contains('$')) {
        return Err("`path` may contain neither `,` nor a second `$`".to_owned());
    }
    if plain.matches('@').count() > FILTER_REFERENCES_MAX {
        return Err(format!("`path` may contain `@` {FILTER_REFERENCES_MAX} times"));
    }
    let mut depth = 0_usize;
    for byte in plain.bytes() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Err(format!("`path` nests more than {NESTING_MAX} brackets"));
        }
    }
    Ok(())
}

/// Returns a path without its quoted names and texts, whose characters have no meaning.
fn without_quoted(path: &str) -> String {
    let (mut quote, mut is_escaped) = (None, false);
    let is_outside = |char: &char| match (quote, *char) {
        (Some(_), _) if is_escaped => {
            is_escaped = false;
            false
        }
        (Some(_), '\\') => {
            is_escaped = true;
            false
        }
        (Some(mark), char) => {
            quote = Some(mark).filter(|mark| *mark != char);
            false
        }
        (None, '"' | '\'') => {
            quote = Some(*char);
            false
        }
        (None, _) => true,
    };
    path.chars().filter(is_outside).collect()
}
