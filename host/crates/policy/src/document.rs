//! A TOML reader that reports the place of every mistake.
//!
//! A reader takes the keys it knows out of a [`Section`]; any key that is left is unknown, which is
//! an error. A section cannot be read in any other way, so no reader can skip this check: a
//! misspelt power is never silently ignored or silently granted.
//!
//! ```
//! use sallyport_policy::document::{Document, Item};
//!
//! let read = |text| {
//!     Document::read("app.toml", text, |root| {
//!         let name = root.required("name", Item::string)?;
//!         let tags = root.list("tags", Item::string)?;
//!         Ok((name, tags))
//!     })
//! };
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
    nesting::too_deep,
    source::{Mistake, Place, SourceError, nearest, quoted},
    unit::{ByteSize, TimeSpan},
};

/// Longest file that is read, in bytes: far larger than any policy that can be reviewed, and small
/// enough that a hostile manifest costs no noticeable time.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// One file: its name, its text, and the offsets of its lines.
#[derive(Debug)]
pub struct Document<'d> {
    file: &'d str,
    text: &'d str,
    line_starts: Vec<usize>,
}

/// A table of a file. Readers take its keys out one by one.
#[derive(Debug)]
pub struct Section<'d> {
    document: &'d Document<'d>,
    offset: usize,
    entries: Vec<(Spanned<DeString<'d>>, Spanned<DeValue<'d>>)>,
    known: Vec<&'static str>,
}

/// A value of a file, with its place and its label for messages.
#[derive(Debug)]
pub struct Item<'d> {
    document: &'d Document<'d>,
    label: String,
    offset: usize,
    value: DeValue<'d>,
}

impl Document<'_> {
    /// Reads a file with a function that takes every key out of its top-level section.
    ///
    /// # Errors
    ///
    /// Text that is too long or not TOML, a duplicate key, any error of the function, and any key
    /// that it did not take.
    pub fn read<T>(
        file: &str,
        text: &str,
        read: impl FnOnce(&mut Section<'_>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        let document = Document { file, text, line_starts };
        if text.len() > DOCUMENT_BYTES_MAX {
            let message =
                format!("the file is longer than {}", ByteSize(DOCUMENT_BYTES_MAX as u64));
            return Err(document.place(0).error(message));
        }
        if let Some(offset) = too_deep(text) {
            return Err(document.place(offset).error("the file nests too deeply"));
        }
        #[cfg(test)]
        let read = crate::tests::grammar::noting(String::new(), read);
        let (root, errors) = DeTable::parse_recoverable(text);
        // The parser often reports one mistake twice; the first place in the text is the real one.
        let first = errors.iter().min_by_key(|error| error.span().map(|span| span.start));
        match first {
            Some(error) => Err(document.syntax_error(error)),
            None => Section::new(&document, 0, root.into_inner()).read(read),
        }
    }

    fn syntax_error(&self, error: &toml::de::Error) -> SourceError {
        let offset = error.span().map_or(0, |span| span.start);
        self.place(offset).error(escape_line(error.message()))
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Place { file: self.file.to_owned(), line, column: before.chars().count() + 1 }
    }
}

impl<'d> Section<'d> {
    fn new(document: &'d Document<'d>, offset: usize, table: DeTable<'d>) -> Self {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Self { document, offset, entries, known: Vec::new() }
    }

    fn read<T>(
        mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let value = read(&mut self)?;
        match self.entries.first() {
            None => Ok(value),
            Some((key, _)) => Err(self.unknown(key)),
        }
    }

    /// The keys that the reader has asked for.
    #[cfg(test)]
    pub(crate) fn known(&self) -> &[&'static str] {
        &self.known
    }

    fn unknown(&self, key: &Spanned<DeString<'d>>) -> SourceError {
        let place = self.document.place(key.span().start);
        let error = place.error(format!("unknown key {}", quoted(key.get_ref())));
        match nearest(key.get_ref(), self.known.iter().copied()) {
            Some(known) => error.with_hint(format!("did you mean \"{known}\"?")),
            None => error.with_hint(format!("the keys known here are {}", self.known.join(", "))),
        }
    }

    /// The start of the section.
    pub fn place(&self) -> Place {
        self.document.place(self.offset)
    }

    /// Takes out the value of a key, if the key exists.
    pub fn take(&mut self, key: &'static str) -> Option<Item<'d>> {
        self.known.push(key);
        let index = self.entries.iter().position(|(found, _)| found.get_ref() == key)?;
        let (_, value) = self.entries.remove(index);
        Some(Item::new(self.document, quoted(key), value))
    }

    /// Takes out all remaining keys, in the order of the file: for tables that mix the reader's own
    /// keys with names.
    pub fn rest(&mut self) -> Vec<(String, Item<'d>)> {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let named = entries.map(|(key, value)| {
            let key = key.into_inner().into_owned();
            let item = Item::new(self.document, quoted(&key), value);
            (key, item)
        });
        named.collect()
    }

    /// Takes out and reads the value of a key, if the key exists.
    ///
    /// # Errors
    ///
    /// Any error of the reader.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Item<'d>) -> Result<T, SourceError>,
    ) -> Result<Option<T>, SourceError> {
        self.take(key).map(read).transpose()
    }

    /// Takes out and reads the value of a required key.
    ///
    /// # Errors
    ///
    /// The key is missing, or the reader refuses its value.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Item<'d>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        match self.take(key) {
            Some(item) => read(item),
            None => Err(self.lacks(&[key], format!("key \"{key}\" is missing"))),
        }
    }

    /// Returns the error for a section that has none of some keys. If a remaining key looks like
    /// one of them, the error is about that key.
    pub fn lacks(&self, keys: &[&'static str], message: impl Into<String>) -> SourceError {
        let mut left = self.entries.iter().map(|(found, _)| found);
        match left.find(|found| nearest(found.get_ref(), keys.iter().copied()).is_some()) {
            Some(misspelt) => self.unknown(misspelt),
            None => self.place().error(message),
        }
    }

    /// Takes out the list under a key and reads its entries; a missing key is an empty list.
    ///
    /// # Errors
    ///
    /// The value is not a list, or the reader refuses an entry.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(Item<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        Ok(self.optional(key, |item| item.list(read))?.unwrap_or_default())
    }

    /// Takes out the table under a key, whose own keys are names, and reads each name with its
    /// value, in the order of the file; a missing key is an empty table.
    ///
    /// # Errors
    ///
    /// The value is not a table, or the reader refuses a name or a value.
    pub fn named<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(Item<'d>, Item<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        Ok(self.optional(key, |item| item.named(read))?.unwrap_or_default())
    }
}

impl<'d> Item<'d> {
    fn new(document: &'d Document<'d>, label: String, value: Spanned<DeValue<'d>>) -> Self {
        Self { document, label, offset: value.span().start, value: value.into_inner() }
    }

    /// The start of the value.
    pub fn place(&self) -> Place {
        self.document.place(self.offset)
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
    pub(crate) fn mismatch<T>(&self, wanted: &str) -> Result<T, SourceError> {
        let found = self.value.type_str();
        let article = if matches!(found, "integer" | "array") { "an" } else { "a" };
        let message = format!("{} must be {wanted}, not {article} {found}", self.label);
        Err(self.place().error(message))
    }

    /// Reads a string.
    ///
    /// # Errors
    ///
    /// The value is not a string.
    pub fn string(self) -> Result<String, SourceError> {
        let DeValue::String(text) = self.value else {
            return self.mismatch("a string");
        };
        Ok(text.into_owned())
    }

    /// Reads a string that is not blank.
    ///
    /// # Errors
    ///
    /// The value is not a string, or contains only white space.
    pub fn prose(self) -> Result<String, SourceError> {
        let (place, label) = (self.place(), self.label.clone());
        let text = self.string()?;
        if text.trim().is_empty() {
            return Err(place.error(format!("{label} is empty")));
        }
        Ok(text)
    }

    /// Reads a string and parses it.
    ///
    /// # Errors
    ///
    /// The value is not a string, or its text is not a `T`.
    pub fn parsed<T>(self) -> Result<T, SourceError>
    where
        T: FromStr<Err: Mistake>,
    {
        let place = self.place();
        self.string()?.parse().map_err(|mistake| place.mistake(&mistake))
    }

    /// Reads a string that must be one of a few words.
    ///
    /// # Errors
    ///
    /// The value is not a string, or not one of the words.
    pub fn choice<T: Copy>(self, choices: &[(&'static str, T)]) -> Result<T, SourceError> {
        let (place, label) = (self.place(), self.label.clone());
        let word = self.string()?;
        if let Some((_, value)) = choices.iter().find(|(known, _)| *known == word) {
            return Ok(*value);
        }
        let known: Vec<_> = choices.iter().map(|(known, _)| *known).collect();
        let error = place.error(format!("{label} cannot be {}", quoted(&word)));
        Err(match nearest(&word, known.iter().copied()) {
            Some(known) => error.with_hint(format!("did you mean \"{known}\"?")),
            None => error.with_hint(format!("write one of {}", known.join(", "))),
        })
    }

    /// Reads a boolean.
    ///
    /// # Errors
    ///
    /// The value is neither `true` nor `false`.
    pub fn boolean(self) -> Result<bool, SourceError> {
        self.value.as_bool().map_or_else(|| self.mismatch("true or false"), Ok)
    }

    /// Reads an integer.
    ///
    /// # Errors
    ///
    /// The value is not an integer, or does not fit in 64 bits.
    pub fn integer(self) -> Result<i64, SourceError> {
        match self.value.as_integer() {
            Some(integer) => self.number(integer),
            None => self.mismatch("an integer"),
        }
    }

    fn number(&self, integer: &DeInteger<'_>) -> Result<i64, SourceError> {
        i64::from_str_radix(integer.as_str(), integer.radix())
            .map_err(|_| self.place().error(format!("{} is too large a number", self.label)))
    }

    /// Reads an integer within a range.
    ///
    /// # Errors
    ///
    /// The value is not an integer, or outside the range.
    pub fn count(self, range: RangeInclusive<u32>) -> Result<u32, SourceError> {
        let (place, label) = (self.place(), self.label.clone());
        let number = u32::try_from(self.integer()?).ok().filter(|number| range.contains(number));
        let (least, most) = range.into_inner();
        number.ok_or_else(|| place.error(format!("{label} must be from {least} to {most}")))
    }

    /// Reads a duration, such as `"10s"`.
    ///
    /// # Errors
    ///
    /// The value is not a string with a number and a unit of time.
    pub fn time(self) -> Result<TimeSpan, SourceError> {
        self.parsed()
    }

    /// Reads a size, such as `"64KiB"`; a plain integer is a number of bytes.
    ///
    /// # Errors
    ///
    /// The value is neither a size nor a non-negative integer.
    pub fn bytes(self) -> Result<ByteSize, SourceError> {
        if !self.is_integer() {
            return self.parsed();
        }
        let (place, label) = (self.place(), self.label.clone());
        let bytes = u64::try_from(self.integer()?);
        bytes.map(ByteSize).map_err(|_| place.error(format!("{label} must not be negative")))
    }

    /// Reads the entries of a list.
    ///
    /// # Errors
    ///
    /// The value is not a list, or the reader refuses an entry.
    pub fn list<T>(
        self,
        read: impl FnMut(Item<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        let DeValue::Array(entries) = self.value else {
            return self.mismatch("a list");
        };
        let label = format!("an entry of {}", self.label);
        let items = entries.into_iter();
        items.map(|entry| Item::new(self.document, label.clone(), entry)).map(read).collect()
    }

    /// Reads a table whose keys are names, in the order of the file.
    ///
    /// # Errors
    ///
    /// The value is not a table, or the reader refuses a name or a value.
    pub fn named<T>(
        self,
        mut read: impl FnMut(Item<'d>, Item<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        let DeValue::Table(table) = self.value else {
            return self.mismatch("a table");
        };
        let entries = Section::new(self.document, self.offset, table).entries.into_iter();
        let pair = |(key, value): (Spanned<DeString<'d>>, _)| {
            let label = quoted(key.get_ref());
            let name = Spanned::new(key.span(), DeValue::String(key.into_inner()));
            let name = Item::new(self.document, label.clone(), name);
            read(name, Item::new(self.document, label, value))
        };
        entries.map(pair).collect()
    }

    /// Reads a table with a function that takes every key out of it.
    ///
    /// # Errors
    ///
    /// The value is not a table, any error of the function, and any key it did not take.
    pub fn section<T>(
        self,
        read: impl FnOnce(&mut Section<'d>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let DeValue::Table(table) = self.value else {
            return self.mismatch("a table");
        };
        #[cfg(test)]
        let read = crate::tests::grammar::noting(self.label.clone(), read);
        Section::new(self.document, self.offset, table).read(read)
    }

    /// Reads any value as JSON; a date becomes a string.
    ///
    /// # Errors
    ///
    /// A number that JSON cannot represent.
    pub fn json(self) -> Result<Value, SourceError> {
        match self.value {
            DeValue::String(text) => Ok(Value::String(text.into_owned())),
            DeValue::Integer(_) => self.integer().map(Value::from),
            DeValue::Float(ref float) => match float.as_str().parse().map(Number::from_f64) {
                Ok(Some(number)) => Ok(Value::Number(number)),
                Ok(None) | Err(_) => self.mismatch("a finite number"),
            },
            DeValue::Boolean(truth) => Ok(Value::Bool(truth)),
            DeValue::Datetime(date) => Ok(Value::String(date.to_string())),
            DeValue::Array(_) => self.list(Item::json).map(Value::Array),
            DeValue::Table(_) => {
                let pairs = self.named(|name, value| Ok((name.string()?, value.json()?)))?;
                Ok(Value::Object(Map::from_iter(pairs)))
            }
        }
    }
}
