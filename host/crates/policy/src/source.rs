//! Places in files, and the mistakes found there.
//!
//! A policy is written by hand, so an error states the file, the line, the column and the mistake,
//! and a separate hint states the probable intention.

use std::fmt;

use sallyport_contract::{NameError, PolicyPlace, text};

/// Most characters of a file's own text that a message quotes.
const QUOTE_CHARS_MAX: usize = 80;

/// A place in a file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as named by the parser's caller.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A mistake in a file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct SourceError {
    /// The file, as named by the parser's caller.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The mistake. Text from the file is quoted, escaped and truncated.
    pub message: String,
    /// The probable intention, or the correct notation; shown apart from the message.
    pub hint: Option<String>,
}

/// A mistake in a piece of text whose place is not known yet.
pub trait HintedError: fmt::Display {
    /// A hint how to write it, if there is one.
    fn hint(&self) -> Option<String> {
        None
    }
}

impl HintedError for NameError {}

impl fmt::Display for SourceLocation {
    /// `policy.toml:12`, the form in which reasons refer to a rule.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", text::escape_line(&self.file), self.line)
    }
}

impl From<&SourceLocation> for PolicyPlace {
    fn from(place: &SourceLocation) -> Self {
        Self { file: place.file.clone(), line: place.line }
    }
}

impl SourceLocation {
    /// The place of an entry that no file has yet.
    pub(crate) fn unwritten() -> Self {
        Self { file: String::new(), line: 0, column: 0 }
    }

    /// Returns an error at this place.
    pub fn into_error(self, message: impl Into<String>) -> SourceError {
        SourceError {
            file: text::escape_line(&self.file),
            line: self.line,
            column: self.column,
            message: message.into(),
            hint: None,
        }
    }

    /// Returns an error at this place, with the message and the hint of a mistake.
    pub fn into_hinted_error(self, hinted_error: &impl HintedError) -> SourceError {
        SourceError { hint: hinted_error.hint(), ..self.into_error(hinted_error.to_string()) }
    }
}

impl SourceError {
    /// The place of the mistake.
    pub fn place(&self) -> SourceLocation {
        SourceLocation { file: self.file.clone(), line: self.line, column: self.column }
    }

    /// Adds a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Returns a piece of a file in quotation marks: escaped, on one line, and truncated.
pub fn quoted(piece: &str) -> String {
    format!("\"{}\"", text::escape_excerpt(piece, QUOTE_CHARS_MAX))
}

/// Returns the candidate that is most similar to a misspelt word, if one is similar enough.
pub fn nearest_match<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // The time grows with the product of both lengths, and no key is this long.
    if word.len() > QUOTE_CHARS_MAX {
        return None;
    }
    let distance = |known: &str| strsim::damerau_levenshtein(word, known);
    let near = |known: &&str| distance(known) <= (known.len().max(word.len()) / 3).max(1);
    candidates.into_iter().filter(near).min_by_key(|known| distance(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found_and_a_far_one_is_not() {
        let keys = ["net", "fs", "env", "limits", "concurrent-calls"];
        let rows = [
            ("nett", Some("net")),
            ("limit", Some("limits")),
            ("concurent_calls", Some("concurrent-calls")),
            ("ne", Some("net")),
            ("process", None),
            ("", None),
        ];
        for (word, want) in rows {
            assert_eq!(nearest_match(word, keys), want, "{word}");
        }
        assert_eq!(nearest_match(&"n".repeat(1_000_000), keys), None);
    }

    #[test]
    fn foreign_text_is_escaped_and_cut() {
        assert_eq!(quoted("a\x1b[2J\nb"), "\"a\\u{1b}[2J\\nb\"");
        assert!(quoted(&"x".repeat(10_000)).len() < 100);
        let place = SourceLocation { file: "a\nb.toml".into(), line: 3, column: 1 };
        assert_eq!(place.to_string(), "a\\nb.toml:3");
        assert_eq!(place.into_error("no").to_string(), "a\\nb.toml:3:1: no");
    }
}
