//! How values are written into columns and read from them.
//!
//! A text of PostgreSQL cannot have the character NUL. Texts come from users, models and plugins, so
//! they may. NUL is written as two other characters, of which the first one is written twice where
//! it occurs itself.

use std::borrow::Cow;

use sallyport_contract::PluginName;
use tokio_postgres::{Row, types::FromSql};

use super::error::PgError;
use crate::sql_integer::from_sql_integer;

/// Begins an escape. A private-use character, which texts rarely have.
const ESCAPE: char = '\u{e0ff}';

/// Follows [`ESCAPE`] for NUL.
const NUL: char = '0';

/// Escapes a text for a column.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => out.extend([ESCAPE, NUL]),
            ESCAPE => out.extend([ESCAPE, ESCAPE]),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// Escapes a text that may be missing.
pub(crate) fn escape_option(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(escape)
}

/// Restores a text that was written with [`escape`].
pub(crate) fn unescape(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE => out.push(match chars.next() {
                Some(NUL) | None => '\0',
                Some(other) => other,
            }),
            other => out.push(other),
        }
    }
    out
}

/// Reads the columns of a row by their names.
pub(crate) trait Columns {
    /// Reads a value as it is.
    fn value<'r, T: FromSql<'r>>(&'r self, column: &str) -> Result<T, PgError>;

    /// Reads an escaped text.
    fn text(&self, column: &str) -> Result<String, PgError> {
        Ok(unescape(self.value(column)?))
    }

    /// Reads an escaped text that may be missing.
    fn text_option(&self, column: &str) -> Result<Option<String>, PgError> {
        Ok(self.value::<Option<String>>(column)?.map(unescape))
    }

    /// Reads a number that was written with `to_sql_integer`.
    fn number(&self, column: &str) -> Result<u64, PgError> {
        Ok(from_sql_integer(self.value(column)?))
    }

    /// Reads a number that may be missing.
    fn number_option(&self, column: &str) -> Result<Option<u64>, PgError> {
        Ok(self.value::<Option<i64>>(column)?.map(from_sql_integer))
    }

    /// Reads the name of a plugin. An invalid name was not written by this program.
    fn plugin(&self, column: &str) -> Result<PluginName, PgError> {
        let text = self.text(column)?;
        text.parse().map_err(|error| PgError::Foreign(format!("{column}: {error}")))
    }
}

impl Columns for Row {
    fn value<'r, T: FromSql<'r>>(&'r self, column: &str) -> Result<T, PgError> {
        Ok(self.try_get(column)?)
    }
}

/// The hash of several texts, for a key whose texts may be longer than an index takes.
pub(crate) fn hash_key(texts: &[&str]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back(text in "[\0\u{e0ff}0-9a-zé]{0,20}") {
            let written = escape(&text).into_owned();
            prop_assert!(!written.contains('\0'));
            prop_assert_eq!(unescape(written), text);
        }
    }

    #[test]
    fn the_parts_of_a_key_are_apart() {
        assert_ne!(hash_key(&["ab", "c"]), hash_key(&["a", "bc"]));
        assert_ne!(hash_key(&["a", ""]), hash_key(&["a"]));
    }
}
