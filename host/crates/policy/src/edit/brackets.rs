//! A list or an inline table of a file: entries between brackets, separated by commas.
//!
//! The parser reports the ends of the entries. This module finds the commas, comments and line
//! breaks between them, so that a change matches the surrounding style and loses no comment.

use std::{collections::BTreeSet, ops::Range};

use super::text_edit::{TextEdit, line_end, line_indent, line_start, newline_style};

/// The indentation of an entry on its own line, relative to the line of the closing bracket.
const INDENT: &str = "    ";

/// The entries between two brackets.
#[derive(Debug)]
pub(super) struct BracketedList<'t> {
    text: &'t str,
    /// From the opening bracket to the end of the closing one.
    span: Range<usize>,
    entries: Vec<Range<usize>>,
}

impl<'t> BracketedList<'t> {
    /// Finds the entries between brackets, given the end of each.
    pub(super) fn new(text: &'t str, span: Range<usize>, mut ends: Vec<usize>) -> Self {
        ends.sort_unstable();
        let mut entries = Vec::with_capacity(ends.len());
        let mut at = span.start + 1;
        for end in ends {
            let start = skip_blank(text, at);
            let start =
                if text[start..].starts_with(',') { skip_blank(text, start + 1) } else { start };
            entries.push(start..end);
            at = end;
        }
        Self { text, span, entries }
    }

    /// The index of the entry that ends at an offset.
    pub(super) fn entry_ending_at(&self, end: usize) -> Option<usize> {
        self.entries.binary_search_by_key(&end, |entry| entry.end).ok()
    }

    fn closing_offset(&self) -> usize {
        self.span.end - 1
    }

    /// The offset of the comma after an entry that ends at `end`.
    fn comma_after(&self, end: usize) -> Option<usize> {
        let at = skip_blank(self.text, end);
        self.text[at..].starts_with(',').then_some(at)
    }

    /// Adds an entry at the end, on its own line if the closing bracket has one.
    pub(super) fn insert_entry(&self, entry: &str) -> Vec<TextEdit> {
        let last = self.entries.last().map(|last| last.end);
        let comma = last.and_then(|end| self.comma_after(end));
        let tail = comma.map(|at| at + 1).or(last).unwrap_or(self.span.start + 1);
        if self.text[tail..self.closing_offset()].contains('\n') {
            return self.insert_line(entry, last.filter(|_| comma.is_none()));
        }
        vec![match (last, comma) {
            (None, _) => TextEdit::replace(tail..self.closing_offset(), self.pad_entry(entry)),
            (Some(end), None) => TextEdit::insert(end, format!(", {entry}")),
            (Some(_), Some(_)) => TextEdit::insert(tail, format!(" {entry},")),
        }]
    }

    /// Adds an entry before the line of the closing bracket. `bare` is the end of the previous
    /// entry if it needs a comma.
    fn insert_line(&self, entry: &str, bare: Option<usize>) -> Vec<TextEdit> {
        let comma =
            if bare.is_some() || (self.entries.is_empty() && !self.is_list()) { "" } else { "," };
        let (indent, newline) =
            (self.entry_indent(), newline_style(self.text, self.closing_offset()));
        let line = format!("{indent}{entry}{comma}{newline}");
        let line = TextEdit::insert(line_start(self.text, self.closing_offset()), line);
        bare.map(|end| TextEdit::insert(end, ",")).into_iter().chain([line]).collect()
    }

    fn is_list(&self) -> bool {
        self.text[self.span.start..].starts_with('[')
    }

    fn pad_entry(&self, entry: &str) -> String {
        if self.is_list() { entry.to_owned() } else { format!(" {entry} ") }
    }

    /// The indentation of entries that begin a line.
    fn entry_indent(&self) -> String {
        let begins_line = |entry: &&Range<usize>| {
            let line = line_start(self.text, entry.start);
            line > self.span.start && is_blank(&self.text[line..entry.start])
        };
        match self.entries.iter().rev().find(begins_line) {
            Some(entry) => line_indent(self.text, entry.start).to_owned(),
            None => line_indent(self.text, self.closing_offset()).to_owned() + INDENT,
        }
    }

    /// Removes some entries, but not all, with their commas and the comments on their lines.
    pub(super) fn remove_entries(&self, removed_indices: &BTreeSet<usize>) -> Vec<TextEdit> {
        let kept = (0..self.entries.len()).rev().find(|index| !removed_indices.contains(index));
        let is_before_kept = |index| kept.is_some_and(|kept| index < kept);
        let removals = removed_indices
            .iter()
            .flat_map(|index| self.remove_entry(*index, is_before_kept(*index)));
        // The new last entry keeps a comma only if the old last entry had one.
        let had_comma =
            self.entries.last().is_some_and(|last| self.comma_after(last.end).is_some());
        let bare = kept.filter(|kept| !had_comma && *kept < self.entries.len() - 1);
        let comma = bare.and_then(|kept| self.comma_after(self.entries[kept].end));
        removals.chain(comma.map(|at| TextEdit::remove(at..at + 1))).collect()
    }

    fn remove_entry(&self, index: usize, is_before_kept: bool) -> Vec<TextEdit> {
        let Range { start, end } = self.entries[index];
        let behind = self.comma_after(end).map_or(end, |at| at + 1);
        // A comma on a later line may have comments before it, which stay.
        if self.text[end..behind].contains('\n') {
            return vec![TextEdit::remove(start..end), TextEdit::remove(behind - 1..behind)];
        }
        vec![TextEdit::remove(self.extend_over_blanks(start..behind, is_before_kept))]
    }

    /// The whole lines of the range if they contain nothing else except a comment; otherwise the
    /// range with the blanks on the side where no entry follows.
    fn extend_over_blanks(&self, range: Range<usize>, is_before_kept: bool) -> Range<usize> {
        let text = self.text;
        let (line, next) = (line_start(text, range.start), line_end(text, range.end));
        let rest = text[range.end..next].trim_start_matches([' ', '\t']);
        let ends_line = rest.starts_with(['#', '\n', '\r']);
        if ends_line && line > self.span.start && is_blank(&text[line..range.start]) {
            return line..next;
        }
        if is_before_kept && !ends_line {
            return range.start..next - rest.len();
        }
        let front = text[..range.start].trim_end_matches([' ', '\t']);
        front.len()..range.end
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The end of the blanks, line breaks and comments that begin at `at`.
fn skip_blank(text: &str, mut at: usize) -> usize {
    loop {
        at = text.len() - text[at..].trim_start_matches([' ', '\t', '\r', '\n']).len();
        if !text[at..].starts_with('#') {
            return at;
        }
        at = line_end(text, at);
    }
}
