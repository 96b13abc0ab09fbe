//! A TOML reader that reports the place of every mistake.
//!
//! A reader takes the keys it knows out of a [`TomlSection`], and any key that is left is an error.
//! No reader can skip this check, so a misspelt power is never silently ignored.
//!
//! ```
//! use sallyport_policy::document::{TomlDocument, TomlItem};
//!
//! let read = |text| TomlDocument::read_with("app.toml", text, |root| {
//!     let name = root.read_required("name", TomlItem::read_string)?;
//!     let tags = root.read_list("tags", TomlItem::read_string)?;
//!     Ok((name, tags))
//! });
//! assert_eq!(read("name = 'x'").unwrap(), ("x".to_owned(), vec![]));
//! let error = read("name = 'x'\ntag = ['y']").unwrap_err();
//! assert_eq!(error.to_string(), "app.toml:2:1: unknown key \"tag\"");
//! assert_eq!(error.hint.as_deref(), Some("did you mean \"tags\"?"));
//! ```

use std::{ops::RangeInclusive, str::FromStr};

use sallyport_contract::text::escape_line;
use serde_json::{Map, Number, Value};
use toml::{
    Spanned,
    de::{DeInteger, DeString, DeTable, DeValue},
};

use crate::{
    nesting::find_too_deep,
    source::{HintedError, SourceError, SourceLocation, nearest_match, quoted},
    unit::{ByteSize, TimeSpan},
};

/// Longest file that is read, in bytes: far larger than any policy that can be reviewed, and small
/// enough that a hostile manifest costs no noticeable time.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// One file: its name, its text, and the offsets of its lines.
#[derive(Debug)]
pub struct TomlDocument<'d> {
    file: &'d str,
    text: &'d str,
    line_starts: Vec<usize>,
}

/// A table of a file. Readers take its keys out one by one.
#[derive(Debug)]
pub struct TomlSection<'d> {
    document: &'d TomlDocument<'d>,
    offset: usize,
    entries: Vec<(Spanned<DeString<'d>>, Spanned<DeValue<'d>>)>,
    known: Vec<&'static str>,
}

/// A value of a file, with its place and its label for messages.
#[derive(Debug)]
pub struct TomlItem<'d> {
    document: &'d TomlDocument<'d>,
    label: String,
    offset: usize,
    value: DeValue<'d>,
}

impl TomlDocument<'_> {
    /// Reads a file with a function that takes every key out of its top-level section.
    ///
    /// # Errors
    ///
    /// Text that is too long or not TOML, a duplicate key, any error of the function, and any key
    /// that it did not take.
    pub fn read_with<T>(
        file: &str,
        text: &str,
        read: impl FnOnce(&mut TomlSection<'_>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        let document = TomlDocument { file, text, line_starts };
        if text.len() > DOCUMENT_BYTES_MAX {
            let message =
                format!("the file is longer than {}", ByteSize(DOCUMENT_BYTES_MAX as u64));
            return Err(document.place_at(0).into_error(message));
        }
        if let Some(offset) = find_too_deep(text) {
            return Err(document.place_at(offset).into_error("the file nests too deeply"));
        }
        #[cfg(test)]
        let read = crate::tests::grammar::noting(String::new(), read);
        let (root, errors) = DeTable::parse_recoverable(text);
        // The parser often reports one mistake twice; the first place in the text is the real one.
        let first = errors.iter().min_by_key(|error| error.span().map(|span| span.start));
        match first {
            Some(error) => Err(document.syntax_error(error)),
            None => TomlSection::new(&document, 0, root.into_inner()).read_with(read),
        }
    }

    fn syntax_error(&self, error: &toml::de::Error) -> SourceError {
        let offset = error.span().map_or(0, |span| span.start);
        self.place_at(offset).into_error(escape_line(error.message()))
    }

    fn place_at(&self, offset: usize) -> SourceLocation {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        SourceLocation { file: self.file.to_owned(), line, column: before.chars().count() + 1 }
    }
}

impl<'d> TomlSection<'d> {
    fn new(document: &'d TomlDocument<'d>, offset: usize, table: DeTable<'d>) -> Self {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Self { document, offset, entries, known: Vec::new() }
    }

    fn read_with<T>(
        mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let value = read(&mut self)?;
        match self.entries.first() {
            None => Ok(value),
            Some((key, _)) => Err(self.unknown_key_error(key)),
        }
    }

    /// The keys that the reader has asked for.
    #[cfg(test)]
    pub(crate) fn known(&self) -> &[&'static str] {
        &self.known
    }

    fn unknown_key_error(&self, key: &Spanned<DeString<'d>>) -> SourceError {
        let place = self.document.place_at(key.span().start);
        let error = place.into_error(format!("unknown key {}", quoted(key.get_ref())));
        match nearest_match(key.get_ref(), self.known.iter().copied()) {
            Some(known) => error.with_hint(format!("did you mean \"{known}\"?")),
            None => error.with_hint(format!("the keys known here are {}", self.known.join(", "))),
        }
    }

    /// The start of the section.
    pub fn place(&self) -> SourceLocation {
        self.document.place_at(self.offset)
    }

    /// Takes out the value of a key, if the key exists.
    pub fn take_item(&mut self, key: &'static str) -> Option<TomlItem<'d>> {
        self.known.push(key);
        let index = self.entries.iter().position(|(found, _)| found.get_ref() == key)?;
        let (_, value) = self.entries.remove(index);
        Some(TomlItem::new(self.document, quoted(key), value))
    }

    /// Takes out all remaining keys, in the order of the file: for tables that mix the reader's own
    /// keys with names.
    pub fn take_rest(&mut self) -> Vec<(String, TomlItem<'d>)> {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let named = entries.map(|(key, value)| {
            let key = key.into_inner().into_owned();
            let item = TomlItem::new(self.document, quoted(&key), value);
            (key, item)
        });
        named.collect()
    }

    /// Takes out and reads the value of a key, if the key exists.
    ///
    /// # Errors
    ///
    /// Any error of the reader.
    pub fn read_optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(TomlItem<'d>) -> Result<T, SourceError>,
    ) -> Result<Option<T>, SourceError> {
        self.take_item(key).map(read).transpose()
    }

    /// Takes out and reads the value of a required key.
    ///
    /// # Errors
    ///
    /// The key is missing, or the reader refuses its value.
    pub fn read_required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(TomlItem<'d>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        match self.take_item(key) {
            Some(item) => read(item),
            None => Err(self.missing_keys_error(&[key], format!("key \"{key}\" is missing"))),
        }
    }

    /// Returns the error for a section that has none of some keys. If a remaining key looks like
    /// one of them, the error is about that key.
    pub fn missing_keys_error(
        &self,
        keys: &[&'static str],
        message: impl Into<String>,
    ) -> SourceError {
        let mut left = self.entries.iter().map(|(found, _)| found);
        match left.find(|found| nearest_match(found.get_ref(), keys.iter().copied()).is_some()) {
            Some(misspelt) => self.unknown_key_error(misspelt),
            None => self.place().into_error(message),
        }
    }

    /// Takes out the list under a key and reads its entries; a missing key is an empty list.
    ///
    /// # Errors
    ///
    /// The value is not a list, or the reader refuses an entry.
    pub fn read_list<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(TomlItem<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        Ok(self.read_optional(key, |item| item.read_list(read))?.unwrap_or_default())
    }

    /// Takes out the table under a key, whose own keys are names, and reads each name with its
    /// value, in the order of the file; a missing key is an empty table.
    ///
    /// # Errors
    ///
    /// The value is not a table, or the reader refuses a name or a value.
    pub fn read_named_items<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(TomlItem<'d>, TomlItem<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        Ok(self.read_optional(key, |item| item.read_named_items(read))?.unwrap_or_default())
    }
}

impl<'d> TomlItem<'d> {
    fn new(document: &'d TomlDocument<'d>, label: String, value: Spanned<DeValue<'d>>) -> Self {
        Self { document, label, offset: value.span().start, value: value.into_inner() }
    }

    /// The start of the value.
    pub fn place(&self) -> SourceLocation {
        self.document.place_at(self.offset)
    }

    /// The label of the value in messages: its key in quotation marks, or the list that contains
    /// it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether the value is a string, for keys that also accept a longer form.
    pub fn is_string(&self) -> bool {
        self.value.is_str()
    }

    /// Whether the value is a list, for keys that accept one value or several.
    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// Whether the value is a boolean, for keys that also accept a longer form.
    pub fn is_boolean(&self) -> bool {
        self.value.is_bool()
    }

    /// Whether the value is `true`.
    pub fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// Whether the value is `false`.
    pub fn is_false(&self) -> bool {
        self.value.as_bool() == Some(false)
    }

    /// Whether the value is a table, for keys that also accept a shorter form.
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// Whether the value is an integer, for keys that accept a number or a string.
    pub fn is_integer(&self) -> bool {
        self.value.is_integer()
    }

    /// Returns the error for a value of the wrong type.
    pub(crate) fn type_mismatch<T>(&self, wanted: &str) -> Result<T, SourceError> {
        let found = self.value.type_str();
        let article = if matches!(found, "integer" | "array") { "an" } else { "a" };
        let message = format!("{} must be {wanted}, not {article} {found}", self.label);
        Err(self.place().into_error(message))
    }

    /// Reads a string.
    ///
    /// # Errors
    ///
    /// The value is not a string.
    pub fn read_string(self) -> Result<String, SourceError> {
        let DeValue::String(text) = self.value else {
            return self.type_mismatch("a string");
        };
        Ok(text.into_owned())
    }

    /// Reads a string that is not blank.
    ///
    /// # Errors
    ///
    /// The value is not a string, or contains only white space.
    pub fn read_nonblank_string(self) -> Result<String, SourceError> {
        let (place, label) = (self.place(), self.label.clone());
        let text = self.read_string()?;
        if text.trim().is_empty() {
            return Err(place.into_error(format!("{label} is empty")));
        }
        Ok(text)
    }

    /// Reads a string and parses it.
    ///
    /// # Errors
    ///
    /// The value is not a string, or its text is not a `T`.
    pub fn read_parsed<T>(self) -> Result<T, SourceError>
    where
        T: FromStr<Err: HintedError>,
    {
        let place = self.place();
        self.read_string()?.parse().map_err(|parse_error| place.into_hinted_error(&parse_error))
    }

    /// Reads a string that must be one of a few words.
    ///
    /// # Errors
    ///
    /// The value is not a string, or not one of the words.
    pub fn read_choice<T: Copy>(self, choices: &[(&'static str, T)]) -> Result<T, SourceError> {
        let (place, label) = (self.place(), self.label.clone());
        let word = self.read_string()?;
        if let Some((_, value)) = choices.iter().find(|(known, _)| *known == word) {
            return Ok(*value);
        }
        let known: Vec<_> = choices.iter().map(|(known, _)| *known).collect();
        let error = place.into_error(format!("{label} cannot be {}", quoted(&word)));
        Err(match nearest_match(&word, known.iter().copied()) {
            Some(known) => error.with_hint(format!("did you mean \"{known}\"?")),
            None => error.with_hint(format!("write one of {}", known.join(", "))),
        })
    }

    /// Reads a boolean.
    ///
    /// # Errors
    ///
    /// The value is neither `true` nor `false`.
    pub fn read_bool(self) -> Result<bool, SourceError> {
        self.value.as_bool().map_or_else(|| self.type_mismatch("true or false"), Ok)
    }

    /// Reads an integer.
    ///
    /// # Errors
    ///
    /// The value is not an integer, or does not fit in 64 bits.
    pub fn read_integer(self) -> Result<i64, SourceError> {
        match self.value.as_integer() {
            Some(integer) => self.parse_integer(integer),
            None => self.type_mismatch("an integer"),
        }
    }

    fn parse_integer(&self, integer: &DeInteger<'_>) -> Result<i64, SourceError> {
        i64::from_str_radix(integer.as_str(), integer.radix())
            .map_err(|_| self.place().into_error(format!("{} is too large a number", self.label)))
    }

    /// Reads an integer within a range.
    ///
    /// # Errors
    ///
    /// The value is not an integer, or outside the range.
    pub fn read_count(self, range: RangeInclusive<u32>) -> Result<u32, SourceError> {
        let (place, label) = (self.place(), self.label.clone());
        let number =
            u32::try_from(self.read_integer()?).ok().filter(|number| range.contains(number));
        let (least, most) = range.into_inner();
        number.ok_or_else(|| place.into_error(format!("{label} must be from {least} to {most}")))
    }

    /// Reads a duration, such as `"10s"`.
    ///
    /// # Errors
    ///
    /// The value is not a string with a number and a unit of time.
    pub fn read_time_span(self) -> Result<TimeSpan, SourceError> {
        self.read_parsed()
    }

    /// Reads a size, such as `"64KiB"`; a plain integer is a number of bytes.
    ///
    /// # Errors
    ///
    /// The value is neither a size nor a non-negative integer.
    pub fn read_byte_size(self) -> Result<ByteSize, SourceError> {
        if !self.is_integer() {
            return self.read_parsed();
        }
        let (place, label) = (self.place(), self.label.clone());
        let bytes = u64::try_from(self.read_integer()?);
        bytes.map(ByteSize).map_err(|_| place.into_error(format!("{label} must not be negative")))
    }

    /// Reads the entries of a list.
    ///
    /// # Errors
    ///
    /// The value is not a list, or the reader refuses an entry.
    pub fn read_list<T>(
        self,
        read: impl FnMut(TomlItem<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        let DeValue::Array(entries) = self.value else {
            return self.type_mismatch("a list");
        };
        let label = format!("an entry of {}", self.label);
        let items = entries.into_iter();
        items.map(|entry| TomlItem::new(self.document, label.clone(), entry)).map(read).collect()
    }

    /// Reads a table whose keys are names, in the order of the file.
    ///
    /// # Errors
    ///
    /// The value is not a table, or the reader refuses a name or a value.
    pub fn read_named_items<T>(
        self,
        mut read: impl FnMut(TomlItem<'d>, TomlItem<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        let DeValue::Table(table) = self.value else {
            return self.type_mismatch("a table");
        };
        let entries = TomlSection::new(self.document, self.offset, table).entries.into_iter();
        let pair = |(key, value): (Spanned<DeString<'d>>, _)| {
            let label = quoted(key.get_ref());
            let name = Spanned::new(key.span(), DeValue::String(key.into_inner()));
            let name = TomlItem::new(self.document, label.clone(), name);
            read(name, TomlItem::new(self.document, label, value))
        };
        entries.map(pair).collect()
    }

    /// Reads a table with a function that takes every key out of it.
    ///
    /// # Errors
    ///
    /// The value is not a table, any error of the function, and any key it did not take.
    pub fn read_section<T>(
        self,
        read: impl FnOnce(&mut TomlSection<'d>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let DeValue::Table(table) = self.value else {
            return self.type_mismatch("a table");
        };
        #[cfg(test)]
        let read = crate::tests::grammar::noting(self.label.clone(), read);
        TomlSection::new(self.document, self.offset, table).read_with(read)
    }

    /// Reads any value as JSON; a date becomes a string.
    ///
    /// # Errors
    ///
    /// A number that JSON cannot represent.
    pub fn read_json(self) -> Result<Value, SourceError> {
        match self.value {
            DeValue::String(text) => Ok(Value::String(text.into_owned())),
            DeValue::Integer(_) => self.read_integer().map(Value::from),
            DeValue::Float(ref float) => match float.as_str().parse().map(Number::from_f64) {
                Ok(Some(number)) => Ok(Value::Number(number)),
                Ok(None) | Err(_) => self.type_mismatch("a finite number"),
            },
            DeValue::Boolean(truth) => Ok(Value::Bool(truth)),
            DeValue::Datetime(date) => Ok(Value::String(date.to_string())),
            DeValue::Array(_) => self.read_list(TomlItem::read_json).map(Value::Array),
            DeValue::Table(_) => {
                let pairs = self.read_named_items(|name, value| {
                    Ok((name.read_string()?, value.read_json()?))
                })?;
                Ok(Value::Object(Map::from_iter(pairs)))
            }
        }
    }
}
