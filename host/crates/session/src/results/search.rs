//! Finds the places in a text that match a pattern.

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::text_range::{json_prefix, line_at};

/// Longest pattern, in bytes. Models search for words, names and short expressions.
pub(super) const PATTERN_BYTES_MAX: usize = 1024;

/// Largest compiled expression, in bytes. It bounds the time to find one match, which is linear in
/// the length of the text and in this.
const COMPILED_BYTES_MAX: usize = 256 << 10;

/// Most places of one search. The next search continues after the last.
pub(super) const MATCHES_MAX: u64 = 50;

/// Longest text around a match, in bytes, on each side. A longer line is cut to it.
const CONTEXT_BYTES: usize = 200;

/// Bytes of a place's JSON that are not its text: names, and two numbers of twenty digits.
const PLACE_FRAME_BYTES: usize = 96;

/// What a search looks for.
#[derive(Debug, Clone)]
pub(super) struct SearchPattern(Regex);

impl PartialEq for SearchPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Compiles a regular expression in which `^` and `$` match at lines.
///
/// # Errors
///
/// The expression is invalid or too large; in words for the model.
pub(super) fn compile_regex(pattern: &str) -> Result<SearchPattern, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX);
    let built = builder.build().map(SearchPattern);
    built.map_err(|error| format!("`regex` is not valid: {error}"))
}

/// Compiles a text that is to be found as it is.
///
/// # Errors
///
/// The text is too long for a pattern; in words for the model.
pub(super) fn compile_literal(text: &str) -> Result<SearchPattern, String> {
    compile_regex(&regex::escape(text)).map_err(|_| "`search` is too long".to_owned())
}

/// The places that were found.
pub(super) struct SearchMatches {
    /// Each with its line, its byte and the text around it.
    pub(super) places: Vec<Value>,
    /// Where the next search continues, if there may be more.
    pub(super) next_byte: Option<usize>,
}

/// Bounds a search.
pub(super) struct SearchLimits<'a> {
    /// Most places.
    pub(super) matches_max: u64,
    /// Most bytes of JSON of all places. The first one is cut to it.
    pub(super) bytes_max: usize,
    /// Asked after each place; the search ends once it says no.
    pub(super) may_continue: &'a dyn Fn() -> bool,
}

/// Finds the first places from an offset on, as far as the limits allow. Further matches within the
/// text around one are not repeated.
pub(super) fn find_matches(
    text: &str,
    pattern: &SearchPattern,
    start: usize,
    limits: &SearchLimits<'_>,
) -> SearchMatches {
    let shown_bytes_max = limits.bytes_max.saturating_sub(PLACE_FRAME_BYTES);
    let (mut places, mut bytes, mut from) = (Vec::new(), 0, start);
    let (mut line, mut counted) = (line_at(text, start), start);
    while let Some(found) = pattern.0.find_at(text, from)
        && found.start() < text.len()
    {
        let (shown, end) = shown_text(text, found.start(), found.end(), shown_bytes_max);
        line += line_at(&text[counted..found.start()], found.start() - counted) - 1;
        counted = found.start();
        let place = json!({ "line": line, "byte": found.start(), "text": shown });
        bytes += crate::memory::json_bytes(&place) + 1;
        if bytes > limits.bytes_max || places.len() as u64 == limits.matches_max {
            return SearchMatches { places, next_byte: Some(found.start()) };
        }
        places.push(place);
        if end >= text.len() {
            break;
        }
        if !(limits.may_continue)() {
            return SearchMatches { places, next_byte: Some(end) };
        }
        from = end;
    }
    SearchMatches { places, next_byte: None }
}

/// Returns the line of a match, cut to the text around it and to `json_bytes_max` if it is long,
/// and the offset after it.
fn shown_text(text: &str, start: usize, end: usize, json_bytes_max: usize) -> (&str, usize) {
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let shown_start = line_start.max(text.floor_char_boundary(start.saturating_sub(CONTEXT_BYTES)));
    let wanted_end = end.min(start + CONTEXT_BYTES).saturating_add(CONTEXT_BYTES);
    let shown_end = line_end.min(text.floor_char_boundary(wanted_end)).max(start);
    let shown = json_prefix(&text[shown_start..shown_end], json_bytes_max);
    let shown_end = shown_start + shown.len();
    // A match that begins at a line break, or an empty one, has to be passed all the same.
    let after = if shown_end == line_end { line_end + 1 } else { shown_end };
    (shown, text.ceil_char_boundary(after.max(start + 1).min(text.len())))
}
