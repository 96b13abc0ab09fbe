//! Long results of tool calls.
//!
//! A result that is longer than a model should read at once is kept whole in the session's
//! [`Journal`](crate::Journal), without secrets, as all results are when they reach the session.
//! The model receives its beginning, its end, its size and its number, and reads the rest with the
//! session's own tool `result`: a [`ResultQuery`]. So a result of megabytes takes a few kilobytes of
//! the transcript, of each request and of the records.
//!
//! A lookup goes to the journal of the session itself, so no session can name a result of another.

mod json_path;
mod memory_results;
mod query;
mod search;
#[cfg(test)]
mod tests;
mod text_range;

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{
    Value, json,
    ser::{PrettyFormatter, Serializer},
};

pub use memory_results::MemoryResults;
pub use query::ResultQuery;
pub(crate) use query::answer_query;

pub(crate) use text_range::json_prefix;
use text_range::{count_lines, json_suffix};

/// Longest text of one kept result, in bytes. It is in memory for as long as a query runs.
pub const KEPT_BYTES_MAX: usize = 16 << 20;

/// Longest result, in bytes of JSON, that a model reads whole unless the options say otherwise:
/// about 8,000 tokens. A page of documentation or a listing of a large folder fits.
pub const RESULT_BYTES_DEFAULT: usize = 32 << 10;

/// The least that the same option can be. An answer about a kept result needs some room, or it
/// would never get to the end.
pub const RESULT_BYTES_LEAST: usize = 4 << 10;

/// The divisor of that length for the beginning and the end of a longer result: a quarter shows
/// what kind of text it is, and the model asks for what it needs.
const EXCERPT_SHARE: usize = 4;

/// The divisor of the excerpt for its end. The beginning of a text usually says more.
const TAIL_SHARE: usize = 4;

/// A result that is kept whole, or its beginning if it is longer than [`KEPT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptResult {
    /// Its number within the session, from 1.
    pub number: u64,
    /// The length of its text, in bytes.
    pub bytes: u64,
    /// How many lines the text has.
    pub lines: u64,
    /// How many bytes of the text are kept, from its beginning.
    pub kept_bytes: u64,
}

/// What a journal found under a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultLookup {
    /// The text.
    Found(String),
    /// Newer results displaced it.
    Displaced,
    /// No result ever had this number.
    Unknown,
}

/// A result that is too long for the model, as text.
#[derive(Debug)]
pub(crate) struct ResultText {
    text: String,
    bytes: u64,
    lines: u64,
}

impl ResultText {
    /// Returns the text of a result: a string as it is, another value as JSON with line breaks, so
    /// that it can be read line by line.
    pub(crate) fn from_value(value: Value) -> Self {
        let text = match value {
            Value::String(text) => text,
            value => to_json_text(&value),
        };
        let (bytes, lines) = (text.len() as u64, count_lines(&text));
        Self { text, bytes, lines }
    }

    /// Returns the part that is kept.
    pub(crate) fn kept_text(&self) -> &str {
        &self.text[..self.text.floor_char_boundary(KEPT_BYTES_MAX)]
    }

    /// Describes it once it is kept.
    pub(crate) fn to_kept_result(&self, number: u64) -> KeptResult {
        let kept_bytes = self.kept_text().len() as u64;
        KeptResult { number, bytes: self.bytes, lines: self.lines, kept_bytes }
    }

    /// Returns what the model receives instead of a result of more than `bytes_max` bytes.
    pub(crate) fn to_excerpt(&self, kept: Option<&KeptResult>, bytes_max: usize) -> Value {
        let excerpt_bytes = bytes_max / EXCERPT_SHARE;
        let tail_bytes = excerpt_bytes / TAIL_SHARE;
        let mut excerpt = json!({
            "bytes": self.bytes,
            "lines": self.lines,
            "head": json_prefix(&self.text, excerpt_bytes - tail_bytes),
            "tail": json_suffix(&self.text, tail_bytes),
        });
        match kept {
            Some(kept) => {
                excerpt["result"] = kept.number.into();
                excerpt["cut"] = kept_note(kept).into();
            }
            None => {
                excerpt["cut"] =
                    "the result is too long and could not be kept; only its beginning \
                                  and its end are here"
                        .into();
            }
        }
        excerpt
    }
}

fn kept_note(kept: &KeptResult) -> String {
    let number = kept.number;
    let part = match kept.kept_bytes < kept.bytes {
        true => format!("its first {} bytes are", kept.kept_bytes),
        false => "it is".to_owned(),
    };
    format!(
        "the result is too long, only its beginning and its end are here; {part} kept as result \
         {number}: read or search it with the tool `result`"
    )
}

/// Writes a value as JSON text with one element a line, or on one line if it would be longer than
/// [`KEPT_BYTES_MAX`] otherwise: a hundred brackets indent each element within them by a hundred
/// spaces.
fn to_json_text(value: &(impl Serialize + ?Sized)) -> String {
    let mut indented = BoundedText(Vec::new());
    // An indent of one space, because deeper ones would fill the text with spaces.
    let formatter = PrettyFormatter::with_indent(b" ");
    let written = value.serialize(&mut Serializer::with_formatter(&mut indented, formatter));
    // Writing a JSON value to memory cannot fail, and JSON text is always UTF-8.
    match written {
        Ok(()) => String::from_utf8(indented.0).unwrap_or_default(),
        Err(_) => serde_json::to_string(value).unwrap_or_default(),
    }
}

/// A text that ends with an error once it would be longer than [`KEPT_BYTES_MAX`].
struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > KEPT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
