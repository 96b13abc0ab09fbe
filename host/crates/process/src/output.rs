//! Parses the output of a program, which must be one JSON value.

use sallyport_contract::{
    json::{self, JsonError},
    text,
};
use serde_json::Value;

/// Maximum length of an excerpt from an invalid output, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// Why an output is not a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// Nothing was printed.
    #[error("the program printed nothing")]
    Nothing,
    /// It is not text.
    #[error("the program printed bytes that are not UTF-8")]
    NotText,
    /// It is not one JSON value.
    #[error("the program printed what is no JSON ({error}): {excerpt}")]
    NotJson {
        /// The JSON error.
        error: JsonError,
        /// The beginning of the output, made safe to show.
        excerpt: String,
    },
}

impl OutputError {
    /// Returns how to fix it.
    pub fn hint(&self) -> &'static str {
        "print one JSON value on standard output and everything else on standard error"
    }
}

/// Parses standard output as one JSON value.
///
/// # Errors
///
/// The output is blank, is not UTF-8, is not exactly one JSON value, or contains a duplicate key.
pub fn parse_output(stdout: &[u8]) -> Result<Value, OutputError> {
    let text = std::str::from_utf8(stdout).map_err(|_| OutputError::NotText)?;
    if text.trim().is_empty() {
        return Err(OutputError::Nothing);
    }
    json::parse_json(text, text.len()).map_err(|error| OutputError::NotJson {
        error,
        excerpt: text::escape_excerpt(text.trim(), EXCERPT_CHARS_MAX),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_value_is_an_answer() {
        let rows: [(&[u8], Value); 4] = [
            (b"{\"a\": 1}\n", json!({"a": 1})),
            (b" \n[1,2]\r\n ", json!([1, 2])),
            (b"\"x\"", json!("x")),
            (b"null", Value::Null),
        ];
        for (stdout, want) in rows {
            assert_eq!(parse_output(stdout), Ok(want));
        }
    }

    #[test]
    fn anything_else_is_none() {
        let rows: [(&[u8], &str); 8] = [
            (b"", "printed nothing"),
            (b" \n\t ", "printed nothing"),
            (b"\xff\xfe", "not UTF-8"),
            (b"hello", "no JSON"),
            (b"{} {}", "no JSON"),
            (b"{\"a\":1,\"a\":2}", "\"a\" stands twice"),
            (b"{\"a\":", "no JSON"),
            (b"\x1b[31mred", "\\u{1b}[31mred"),
        ];
        for (stdout, words) in rows {
            let error = parse_output(stdout).unwrap_err();
            assert!(error.to_string().contains(words), "{stdout:?}: {error}");
        }
    }

    #[test]
    fn only_the_beginning_of_it_is_shown() {
        let error = parse_output(&vec![b'x'; 1 << 20]).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }
}
