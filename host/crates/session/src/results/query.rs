//! What a model asks of a kept result.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sallyport_contract::{CallFailure, FailureKind, Outcome, ToolOutput};
use serde_json::{Map, Value, json};

use super::{
    ResultLookup,
    json_path::follow_path,
    search::{self, MATCHES_MAX, PATTERN_BYTES_MAX, SearchLimits, SearchPattern, find_matches},
    text_range::{byte_offset, count_lines, end_of_lines, json_prefix, line_at, line_start},
};
use crate::memory::json_bytes;

/// Bytes of an answer's JSON that are not text.
const FRAME_BYTES: usize = 512;

/// How long a search may take before it returns the places that it has found. The next one
/// continues after them.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);

/// A query: which result, which part of it, and what of that.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultQuery {
    /// The number of the result.
    pub number: u64,
    /// A JSONPath to the part that the rest is about.
    path: Option<String>,
    pattern: Option<SearchPattern>,
    start: Position,
    length: Option<Extent>,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Position {
    Line(i64),
    Byte(i64),
}

/// How much to return: lines, or matches of a search; or bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Extent {
    Lines(u64),
    Bytes(u64),
}

impl ResultQuery {
    /// The parameters of the tool, as JSON Schema.
    pub(crate) fn parameters() -> Value {
        let whole = |description: &str| json!({ "type": "integer", "description": description });
        let count = |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
        let text = |description: &str| json!({ "type": "string", "description": description });
        json!({
            "type": "object",
            "properties": {
                "result": count("The number of the result."),
                "path": text("A JSONPath such as $.items[0].name. Everything else then applies to \
                              that part of the result. A text at the path is read as text."),
                "search": text("A text to find. Returns the places that contain it."),
                "regex": text("A regular expression to find instead. (?i) ignores case."),
                "line": whole("The line to begin at, from 1; -1 is the last."),
                "lines": count("The most lines to return, or the most places of a search."),
                "byte": whole("The byte to begin at, from 0, instead of a line; -100 is the last 100."),
                "bytes": count("The most bytes to return."),
            },
            "required": ["result"],
            "additionalProperties": false,
        })
    }

    /// Parses the arguments of a call.
    ///
    /// # Errors
    ///
    /// An argument is missing, unknown or invalid, or two exclude each other.
    pub(crate) fn from_arguments(mut given: Map<String, Value>) -> Result<Self, CallFailure> {
        let number = take_count(&mut given, "result")?
            .ok_or_else(|| invalid("`result` has to be there, as a number"))?;
        let path = take_text(&mut given, "path")?;
        let (literal, regex) = (take_text(&mut given, "search")?, take_text(&mut given, "regex")?);
        let (line, byte) = (take_position(&mut given, "line")?, take_position(&mut given, "byte")?);
        let (lines, bytes) = (take_count(&mut given, "lines")?, take_count(&mut given, "bytes")?);
        if let Some(unknown) = given.keys().next() {
            return Err(invalid(&format!("there is no argument `{unknown}`")));
        }
        let pattern = parse_pattern(literal, regex)?;
        if pattern.is_some() && bytes.is_some() {
            return Err(invalid("a search takes `lines` for the most places, not `bytes`"));
        }
        let start = match (line, byte) {
            (Some(_), Some(_)) => return Err(invalid("give `line` or `byte`, not both")),
            (Some(line), None) => Position::Line(line),
            (None, byte) => Position::Byte(byte.unwrap_or(0)),
        };
        let length = match (lines, bytes) {
            (Some(_), Some(_)) => return Err(invalid("give `lines` or `bytes`, not both")),
            (Some(lines), None) => Some(Extent::Lines(lines)),
            (None, bytes) => bytes.map(Extent::Bytes),
        };
        Ok(Self { number, path, pattern, start, length })
    }

    /// Answers the query about the text of its result, in at most `bytes_max` bytes of JSON. It
    /// may take seconds for a long text. A search ends early once `may_continue` says no.
    ///
    /// # Errors
    ///
    /// The path cannot be followed.
    pub(crate) fn answer(
        &self,
        text: &str,
        bytes_max: usize,
        may_continue: &dyn Fn() -> bool,
    ) -> Result<Value, CallFailure> {
        let bytes_max = bytes_max.saturating_sub(FRAME_BYTES);
        let part = match &self.path {
            Some(path) => Some(follow_path(text, path).map_err(|why| invalid(&why))?),
            None => None,
        };
        let text = part.as_deref().unwrap_or(text);
        let start = match self.start {
            Position::Line(line) => line_start(text, line),
            Position::Byte(byte) => byte_offset(text, byte),
        };
        let mut answer = match &self.pattern {
            Some(pattern) => {
                let matches_max = self.matches_max();
                let limits = SearchLimits { matches_max, bytes_max, may_continue };
                search_text(text, pattern, start, &limits)
            }
            None => self.read(text, start, bytes_max),
        };
        answer["result"] = self.number.into();
        answer["bytes"] = text.len().into();
        answer["lines"] = count_lines(text).into();
        Ok(answer)
    }

    fn matches_max(&self) -> u64 {
        match self.length {
            Some(Extent::Lines(lines)) => lines.min(MATCHES_MAX),
            Some(Extent::Bytes(_)) | None => MATCHES_MAX,
        }
    }

    fn read(&self, text: &str, start: usize, bytes_max: usize) -> Value {
        let wanted_end = match self.length {
            Some(Extent::Lines(lines)) => end_of_lines(text, start, lines),
            Some(Extent::Bytes(bytes)) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                // Upwards, because an answer without a character would never get to the end.
                text.ceil_char_boundary(start.saturating_add(bytes).min(text.len()))
            }
            None => text.len(),
        };
        let shown = json_prefix(&text[start..wanted_end], bytes_max);
        let end = start + shown.len();
        let mut answer = json!({ "text": shown, "byte": start, "line": line_at(text, start) });
        if end < text.len() {
            answer["next_byte"] = end.into();
        }
        debug_assert!(json_bytes(&answer) <= bytes_max + FRAME_BYTES);
        answer
    }
}

fn search_text(
    text: &str,
    pattern: &SearchPattern,
    start: usize,
    limits: &SearchLimits<'_>,
) -> Value {
    let found = find_matches(text, pattern, start, limits);
    let mut answer = json!({ "matches": found.places });
    if let Some(next_byte) = found.next_byte {
        answer["next_byte"] = next_byte.into();
    }
    answer
}

/// Answers a query about what its journal found, in at most `bytes_max` bytes of JSON. If the
/// future is dropped, a search ends after the place that it looks for.
pub(crate) async fn answer_query(
    query: ResultQuery,
    found: ResultLookup,
    bytes_max: usize,
) -> Outcome {
    let number = query.number;
    let failed = |kind, message: String| Outcome::Failed(CallFailure::new(kind, message));
    let text = match found {
        ResultLookup::Found(text) => text,
        ResultLookup::Displaced => {
            let why = "is no longer kept, because newer results needed its room; call the tool that \
                       returned it again";
            return failed(FailureKind::NotFound, format!("result {number} {why}"));
        }
        ResultLookup::Unknown => {
            return failed(FailureKind::NotFound, format!("there is no result {number}"));
        }
    };
    let asker = Arc::new(());
    let (waiting_asker, until) = (Arc::downgrade(&asker), Instant::now() + SEARCH_TIME_MAX);
    let may_continue = move || waiting_asker.strong_count() > 0 && Instant::now() < until;
    // A search through megabytes must not hold up the other tasks of this thread.
    let answering =
        tokio::task::spawn_blocking(move || query.answer(&text, bytes_max, &may_continue));
    match answering.await {
        Ok(Ok(data)) => Outcome::Completed(ToolOutput { data, ..ToolOutput::default() }),
        Ok(Err(failure)) => Outcome::InvalidArguments(failure),
        Err(error) => failed(FailureKind::Internal, format!("the query broke: {error}")),
    }
}

fn parse_pattern(
    literal: Option<String>,
    regex: Option<String>,
) -> Result<Option<SearchPattern>, CallFailure> {
    let compiled = match (literal, regex) {
        (Some(_), Some(_)) => return Err(invalid("give `search` or `regex`, not both")),
        (None, None) => return Ok(None),
        (Some(pattern), None) | (None, Some(pattern)) if pattern.len() > PATTERN_BYTES_MAX => {
            return Err(invalid(&format!("a pattern has at most {PATTERN_BYTES_MAX} bytes")));
        }
        (Some(text), None) => search::compile_literal(&text),
        (None, Some(pattern)) => search::compile_regex(&pattern),
    };
    compiled.map(Some).map_err(|why| invalid(&why))
}

/// Takes an argument; `null` counts as absent, because many models write it for one.
fn take_value(given: &mut Map<String, Value>, key: &str) -> Option<Value> {
    given.remove(key).filter(|value| !value.is_null())
}

/// An empty text counts as absent as well.
fn take_text(given: &mut Map<String, Value>, key: &str) -> Result<Option<String>, CallFailure> {
    match take_value(given, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(_) => Err(invalid(&format!("`{key}` has to be a text"))),
    }
}

fn take_count(given: &mut Map<String, Value>, key: &str) -> Result<Option<u64>, CallFailure> {
    let not_a_count = || invalid(&format!("`{key}` has to be a number from 1"));
    match take_value(given, key) {
        None => Ok(None),
        Some(value) => value.as_u64().filter(|count| *count > 0).map(Some).ok_or_else(not_a_count),
    }
}

fn take_position(given: &mut Map<String, Value>, key: &str) -> Result<Option<i64>, CallFailure> {
    let not_whole = || invalid(&format!("`{key}` has to be a whole number"));
    take_value(given, key).map(|value| value.as_i64().ok_or_else(not_whole)).transpose()
}

fn invalid(why: &str) -> CallFailure {
    CallFailure::new(FailureKind::InvalidArguments, format!("result: {why}"))
}
