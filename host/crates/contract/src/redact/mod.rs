//! Removes known secrets from all outgoing data: results, messages, records, bodies of replies.
//!
//! A server that received a credential may send it back, verbatim or in any of the encodings that
//! programs apply to a text in transit. A [`Redactor`] recognises every secret that it knows
//!
//! - verbatim, in any case of its ASCII letters, in UTF-8 and in UTF-16 of either byte order, and
//!   with each blank as a plus;
//! - in base64 of either alphabet, at any offset within the data, and with any line breaks;
//! - in hexadecimal digits, also with colons, dashes, commas, dots or blanks between them;
//! - and each of these with any of its characters escaped: up to three times over as in URLs
//!   (`%2F`), JSON and programming languages (`\/`, `\u002f`, `\x2f`) and markup (`&#x2F;`,
//!   `&sol;`), or once as in mail (quoted-printable);
//!
//! and replaces it with `[secret NAME]`, also when it arrives in pieces. This catches accidents and
//! servers that echo; it is not a security boundary. Compression, encryption, base32, base64 within
//! base64, a reversed secret and a secret in two halves are not recognised, and code that has a
//! secret and wants to leak it can always invent another encoding.
//!
//! - `escape`, `entities`: one escape.
//! - `forms`, `table`: the forms to look for, as automata.
//! - `reader`, `cursor`: the progress of a stream of bytes through the automata.
//! - `stream`: the bytes that are passed on, held back and replaced.

mod cursor;
mod entities;
mod escape;
mod forms;
mod matcher;
mod report;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, mem, sync::Arc};

use serde_json::{Map, Value};

pub use stream::{RedactStream, ScanStream};

use crate::secret::Secret;
use cursor::RedactionCursor;
use table::SecretFormTable;

/// Shortest secret that is looked for, in bytes. Shorter ones occur in ordinary text by chance, so
/// redacting them would garble results and reveal more than it hides.
pub const REDACTED_BYTES_MIN: usize = 6;

/// Knows secrets in all their forms, and removes them from texts, values, bytes and streams.
#[derive(Clone)]
pub struct Redactor {
    table: Option<Arc<SecretFormTable>>,
    too_short: Vec<String>,
}

impl Redactor {
    /// Knows no secret and changes nothing.
    pub fn empty() -> Self {
        Self { table: None, too_short: Vec::new() }
    }

    /// Knows the secrets by name. If two names have the same value, the first is shown.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a Secret)>) -> Self {
        let (known, short): (Vec<_>, Vec<_>) = secrets
            .into_iter()
            .partition(|(_, secret)| secret.expose().trim().len() >= REDACTED_BYTES_MIN);
        let table = (!known.is_empty()).then(|| Arc::new(SecretFormTable::new(&known)));
        Self { table, too_short: short.into_iter().map(|(name, _)| name.to_owned()).collect() }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.table.is_none()
    }

    /// The names of secrets that are too short to be looked for; the caller should report them.
    pub fn too_short_names(&self) -> &[String] {
        &self.too_short
    }

    /// Returns the text without secrets.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A form that ends within a character leaves half of that character.
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }

    /// Returns the bytes without secrets.
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut stream = self.redact_stream();
        let begin = stream.push(bytes);
        let (end, replaced) = stream.finish_and_report();
        if replaced { Cow::Owned([&begin, end.as_slice()].concat()) } else { Cow::Borrowed(bytes) }
    }

    /// Removes secrets from a value: from its strings, its keys, and the digits of its numbers.
    pub fn redact_value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if let Cow::Owned(clean) = self.redact_text(&number.to_string()) {
                    *value = Value::String(clean);
                }
            }
            Value::String(text) => self.redact_string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(entries) => {
                entries.values_mut().for_each(|item| self.redact_value(item));
                self.redact_keys(entries);
            }
        }
    }

    /// Returns the name of a secret that the bytes contain.
    pub fn find_secret(&self, bytes: &[u8]) -> Option<&str> {
        self.find_secret_except(bytes, &[])
    }

    /// Returns the name of a secret that the bytes contain, other than the spared ones.
    pub fn find_secret_except(&self, bytes: &[u8], allowed_names: &[String]) -> Option<&str> {
        let table = self.table.as_deref()?;
        RedactionCursor::new().find_secret_in(table, bytes, allowed_names)
    }

    /// Starts removing secrets from data that arrives in pieces.
    pub fn redact_stream(&self) -> RedactStream {
        RedactStream::new(self.table.clone())
    }

    /// Starts looking for secrets in data that leaves in pieces.
    pub fn scan_stream(&self) -> ScanStream {
        self.scan_stream_except(&[])
    }

    /// Starts looking for secrets other than the spared ones.
    pub fn scan_stream_except(&self, allowed_names: &[String]) -> ScanStream {
        ScanStream::new(self.table.clone(), allowed_names)
    }

    fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact_text(text) {
            *text = clean;
        }
    }

    fn redact_keys(&self, entries: &mut Map<String, Value>) {
        if entries.keys().all(|key| self.find_secret(key.as_bytes()).is_none()) {
            return;
        }
        for (key, value) in mem::take(entries) {
            let mut key = self.redact_text(&key).into_owned();
            // Two keys may be equal without their secrets; neither entry is lost.
            while entries.contains_key(&key) {
                key.push('\'');
            }
            entries.insert(key, value);
        }
    }
}

impl fmt::Debug for Redactor {
    /// Shows names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.table.as_deref().map(SecretFormTable::secret_names).unwrap_or_default();
        f.debug_tuple("Redactor").field(&names).finish()
    }
}
