//! The tables of a policy file, with the notation of each.
//!
//! TOML has many notations for one table: under a header, with dotted keys, in braces, or
//! implicitly around other tables. A key is added and removed in the notation of its table.

use std::{collections::BTreeSet, ops::Range};

use sallyport_contract::text::escape_line;
use toml_edit::{Array, ArrayOfTables, Document, InlineTable, Item, Key, Table, TableLike};

use super::{
    brackets::BracketedList,
    error::EditError,
    text_edit::{TextEdit, add_block, add_line, line_end, line_indent, line_start, remove_block},
};
use crate::{document::DOCUMENT_BYTES_MAX, nesting::find_too_deep, unit::ByteSize};

const HAS_SPAN: &str = "what has just been parsed has a place";
const IS_THERE: &str = "only what was found is removed";

/// A parsed file.
#[derive(Debug)]
pub(super) struct TomlTree<'t> {
    text: &'t str,
    document: Document<&'t str>,
}

/// A table of the file, and the notation of its keys.
pub(super) struct TableNode<'d> {
    table: &'d dyn TableLike,
    path: Vec<&'d str>,
    /// The number of keys at the end of the path that are dotted prefixes of the table's own keys.
    dotted: usize,
    /// The braces around the table's keys: its own, or those of an outer table.
    braces: Option<&'d InlineTable>,
    /// The range of the table's own header.
    header: Option<Range<usize>>,
}

impl<'t> TomlTree<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, EditError> {
        let refused = |at, message| {
            let (line, column) = line_and_column(text, at);
            EditError::Syntax { line, column, message }
        };
        if text.len() > DOCUMENT_BYTES_MAX {
            let longest = ByteSize(DOCUMENT_BYTES_MAX as u64);
            return Err(refused(0, format!("the file is longer than {longest}")));
        }
        if let Some(at) = find_too_deep(text) {
            return Err(refused(at, "the file nests too deeply".to_owned()));
        }
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            refused(at, escape_line(error.message()))
        })?;
        Ok(Self { text, document })
    }

    /// The text of a range of the file.
    pub(super) fn text_in(&self, range: Range<usize>) -> &'t str {
        &self.text[range]
    }

    /// The line of an offset, from 1.
    pub(super) fn line_at(&self, at: usize) -> usize {
        line_and_column(self.text, at).0
    }

    /// Returns the error for a key with a value that policies do not allow there.
    pub(super) fn shape_error(&self, key: &str, item: &Item, wanted: &'static str) -> EditError {
        let at = item.span().map_or(0, |span| span.start);
        let (line, column) = line_and_column(self.text, at);
        EditError::Shape { line, column, key: key.to_owned(), wanted }
    }

    /// The top-level table.
    pub(super) fn root_table(&self) -> TableNode<'_> {
        let table = self.document.as_table();
        TableNode { table, path: Vec::new(), dotted: 0, braces: None, header: None }
    }

    /// Finds the table at a path.
    ///
    /// # Errors
    ///
    /// A key on the path is not a table.
    pub(super) fn find_table<'d>(
        &'d self,
        path: &[&'d str],
    ) -> Result<Option<TableNode<'d>>, EditError> {
        let mut place = self.root_table();
        for key in path {
            let Some(item) = place.table.get(key) else { return Ok(None) };
            let inner = place.child_table(key, item);
            place = inner.ok_or_else(|| self.shape_error(key, item, "a table"))?;
        }
        Ok(Some(place))
    }

    fn array_brackets(&self, array: &Array) -> BracketedList<'t> {
        let ends = array.iter().map(|value| value.span().expect(HAS_SPAN).end);
        BracketedList::new(self.text, array.span().expect(HAS_SPAN), ends.collect())
    }

    fn inline_table_brackets(&self, table: &InlineTable) -> BracketedList<'t> {
        let ends = pair_ranges(table).into_iter().map(|pair| pair.end);
        BracketedList::new(self.text, table.span().expect(HAS_SPAN), ends.collect())
    }

    /// Adds an entry to a list.
    pub(super) fn add_entry(&self, array: &Array, entry: &str) -> Vec<TextEdit> {
        self.array_brackets(array).insert_entry(entry)
    }

    /// Adds a table after the last one of an array of tables.
    pub(super) fn add_array_table(&self, tables: &ArrayOfTables, block: &str) -> Vec<TextEdit> {
        let last = tables
            .iter()
            .flat_map(|table| self.table_line_ranges(table))
            .map(|lines| lines.end)
            .max();
        vec![add_block(self.text, last.unwrap_or(self.text.len()), block)]
    }

    /// Adds a table at the end of the file.
    pub(super) fn add_table(&self, block: &str) -> Vec<TextEdit> {
        vec![add_block(self.text, self.text.len(), block)]
    }

    /// Adds a key to a table.
    pub(super) fn add_key(&self, place: &TableNode<'_>, key: &str, value: &str) -> Vec<TextEdit> {
        let pair = format!("{}{key} = {value}", place.dotted_prefix());
        if let Some(braces) = place.braces {
            return self.inline_table_brackets(braces).insert_entry(&pair);
        }
        let last = pair_ranges(place.table).into_iter().max_by_key(|pair| pair.end);
        let Some(Range { start, end }) = last.or_else(|| place.header.clone()) else {
            let header = place.path.join(".");
            return self.add_table(&format!("[{header}]\n{key} = {value}\n"));
        };
        let line = format!("{}{pair}", line_indent(self.text, start));
        vec![add_line(self.text, line_end(self.text, end), &line)]
    }

    /// Removes some entries of the list at a path. If no entry is left, the list is removed too.
    pub(super) fn remove_entries(
        &self,
        path: &[&str],
        removed_indices: &BTreeSet<usize>,
    ) -> Vec<TextEdit> {
        let item = self.item_at(path);
        if let Some(array) = item.as_array().filter(|array| array.len() > removed_indices.len()) {
            return self.array_brackets(array).remove_entries(removed_indices);
        }
        match item.as_array_of_tables().filter(|tables| tables.len() > removed_indices.len()) {
            Some(tables) => {
                let tables = removed_indices.iter().filter_map(|index| tables.get(*index));
                let parts = tables.flat_map(|table| self.table_line_ranges(table));
                parts.map(|lines| remove_block(self.text, lines)).collect()
            }
            None => self.remove_key(path),
        }
    }

    /// Removes a key, and the outer tables that contain nothing else.
    pub(super) fn remove_key(&self, path: &[&str]) -> Vec<TextEdit> {
        let (key, around) = path.split_last().expect("the root is not a key");
        let place = self.find_table(around).ok().flatten().expect(IS_THERE);
        if place.table.len() == 1 && !around.is_empty() {
            return self.remove_key(around);
        }
        let (name, item) = place.table.get_key_value(key).expect(IS_THERE);
        let ends = value_ends(item);
        if let Some(braces) = place.braces {
            let brackets = self.inline_table_brackets(braces);
            let removed_indices =
                ends.iter().filter_map(|end| brackets.entry_ending_at(*end)).collect();
            return brackets.remove_entries(&removed_indices);
        }
        let mut parts = self.key_line_ranges(name, item);
        // A header without keys has no effect, even if its table still contains other tables.
        if !ends.is_empty() && ends.len() == pair_ranges(place.table).len() {
            parts.extend(place.header.map(|header| self.header_line_range(header, place.table)));
        }
        parts.into_iter().map(|lines| remove_block(self.text, lines)).collect()
    }

    /// Replaces the value of a key.
    ///
    /// # Errors
    ///
    /// The value is a table.
    pub(super) fn replace_value(
        &self,
        key: &str,
        item: &Item,
        value: &str,
    ) -> Result<Vec<TextEdit>, EditError> {
        let plain = item.as_value().filter(|value| !value.is_inline_table());
        let plain = plain.ok_or_else(|| self.shape_error(key, item, "a limit"))?;
        let span = plain.span().expect(HAS_SPAN);
        Ok(vec![TextEdit::replace(span, value)])
    }

    fn item_at(&self, path: &[&str]) -> &Item {
        let root = self.document.as_item();
        path.iter().try_fold(root, |item, key| item.as_table_like()?.get(key)).expect(IS_THERE)
    }

    /// The lines of a key outside braces; a table may be in several places.
    fn key_line_ranges(&self, key: &Key, item: &Item) -> Vec<Range<usize>> {
        if let Some(value) = item.as_value() {
            let (key, value) = (key.span().expect(HAS_SPAN), value.span().expect(HAS_SPAN));
            return vec![self.whole_lines(key.start..value.end)];
        }
        let table = item.as_table().into_iter();
        let tables = table.chain(item.as_array_of_tables().into_iter().flatten());
        tables.flat_map(|table| self.table_line_ranges(table)).collect()
    }

    /// The lines of a table and of its subtables.
    fn table_line_ranges(&self, table: &Table) -> Vec<Range<usize>> {
        let own = header_range(table).map(|header| self.header_line_range(header, table));
        let inner = table.iter().filter_map(|(key, _)| table.get_key_value(key));
        own.into_iter()
            .chain(inner.flat_map(|(key, item)| self.key_line_ranges(key, item)))
            .collect()
    }

    /// The lines of a header and of the keys under it.
    fn header_line_range(&self, header: Range<usize>, table: &dyn TableLike) -> Range<usize> {
        let end = pair_ranges(table).into_iter().map(|pair| pair.end).max();
        self.whole_lines(header.start..end.unwrap_or(header.end))
    }

    fn whole_lines(&self, range: Range<usize>) -> Range<usize> {
        line_start(self.text, range.start)..line_end(self.text, range.end)
    }
}

impl<'d> TableNode<'d> {
    fn child_table(&self, key: &'d str, item: &'d Item) -> Option<Self> {
        let table = item.as_table_like()?;
        let path = self.path.iter().copied().chain([key]).collect();
        let is_dotted = table.is_dotted();
        Some(Self {
            table,
            path,
            dotted: if is_dotted { self.dotted + 1 } else { 0 },
            braces: item.as_inline_table().filter(|_| !is_dotted).or(self.braces),
            header: item.as_table().and_then(header_range),
        })
    }

    /// The value of a key of the table.
    pub(super) fn get(&self, key: &str) -> Option<&'d Item> {
        self.table.get(key)
    }

    /// The keys of the table.
    pub(super) fn key_names(&self) -> Vec<String> {
        self.table.iter().map(|(key, _)| key.to_owned()).collect()
    }

    /// Whether the subtables of this table are written in braces.
    pub(super) fn has_inline_subtables(&self) -> bool {
        let mut items = self.table.iter();
        self.braces.is_some()
            || (!self.table.is_empty() && items.all(|(_, item)| item.is_inline_table()))
    }

    fn dotted_prefix(&self) -> String {
        let dotted = &self.path[self.path.len() - self.dotted..];
        dotted.iter().map(|key| format!("{key}.")).collect()
    }
}

/// The range of a table's header. Implicit tables and tables of dotted keys have none.
fn header_range(table: &Table) -> Option<Range<usize>> {
    let has_header = !table.is_dotted() && !table.is_implicit();
    has_header.then(|| table.span().expect(HAS_SPAN))
}

/// The ranges of a table's keys with their values; for dotted keys, from the last part on.
fn pair_ranges(table: &dyn TableLike) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (key, item) in table.iter() {
        match item.as_table_like().filter(|inner| inner.is_dotted()) {
            Some(inner) => found.extend(pair_ranges(inner)),
            None => {
                let key = table.key(key).and_then(Key::span).expect(HAS_SPAN);
                let value = item.as_value().and_then(|value| value.span());
                found.extend(value.map(|value| key.start..value.end));
            }
        }
    }
    found
}

/// The ends of the values that a key has in the lines or braces of its own table.
fn value_ends(item: &Item) -> Vec<usize> {
    let value = item.as_value().and_then(|value| value.span());
    match item.as_table_like().filter(|table| table.is_dotted()) {
        Some(table) => pair_ranges(table).into_iter().map(|pair| pair.end).collect(),
        None => value.map(|value| value.end).into_iter().collect(),
    }
}

/// The line and column of an offset, both from 1, the column in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let start = line_start(text, at);
    let line = text[..start].matches('\n').count() + 1;
    (line, text.get(start..at).unwrap_or_default().chars().count() + 1)
}
