//! Places in a definition, for its mistakes.

use std::fmt;

use sallyport_contract::text;
use sallyport_policy::{HintedError, SourceError, SourceLocation};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::file::DefinitionFile;

/// Most characters of a parser's message that an error shows.
const MESSAGE_CHARS_MAX: usize = 400;

/// The text of a definition and the name of its file.
pub(super) struct DefinitionSource<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl DefinitionSource<'_> {
    /// Reads the fields of the file.
    pub(super) fn read(&self) -> Result<DefinitionFile, SourceError> {
        serde_json::from_str(self.text).map_err(|error| {
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(&*message, |(before, _)| before);
            let place = self.location(error.line(), error.column());
            place.into_error(text::escape_excerpt(message, MESSAGE_CHARS_MAX))
        })
    }

    /// The place of the value that these keys lead to. If a key is missing, the place of the value
    /// around it.
    pub(super) fn place(&self, keys: &[&str]) -> SourceLocation {
        let mut reader = serde_json::Deserializer::from_str(self.text);
        match (PlaceSeeker { keys }).deserialize(&mut reader) {
            Err(found) => self.location(found.line(), found.column()),
            Ok(()) if keys.is_empty() => self.location(1, 1),
            Ok(()) => self.place(&keys[..keys.len() - 1]),
        }
    }

    fn location(&self, line: usize, column: usize) -> SourceLocation {
        SourceLocation { file: self.file.to_owned(), line: line.max(1), column: column.max(1) }
    }

    /// The error at the value that these keys lead to.
    pub(super) fn error(&self, keys: &[&str], message: impl Into<String>) -> SourceError {
        self.place(keys).into_error(message)
    }

    /// The error of a mistake at the value that these keys lead to.
    pub(super) fn hinted(&self, keys: &[&str], error: &impl HintedError) -> SourceError {
        self.place(keys).into_hinted_error(error)
    }
}

/// Walks to a value and stops there with an error, because the parser adds the place to it.
struct PlaceSeeker<'k> {
    keys: &'k [&'k str],
}

impl<'de> DeserializeSeed<'de> for PlaceSeeker<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        match self.keys {
            [] => reader.deserialize_any(StopVisitor),
            _ => reader.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for PlaceSeeker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.keys {
                [first, rest @ ..] if *first == key => {
                    map.next_value_seed(PlaceSeeker { keys: rest })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Refuses any value, at its place.
struct StopVisitor;

impl<'de> Visitor<'de> for StopVisitor {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom("here"))
    }
}
