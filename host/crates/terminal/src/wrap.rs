//! Breaks text into lines whose width is measured in columns, not characters.
//!
//! A line breaks at spaces and next to wide characters, which need no spaces. A word longer than a
//! line breaks between grapheme clusters; in a folded line after punctuation, if there is some.

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;

use crate::{
    columns::text_columns,
    style::{StyledLine, StyledSpan},
};

/// Wide closing punctuation, which cannot begin a line.
const CLOSING: &str = "、。，．・：；！？）］｝」』】〉》〕";

/// A word that is too long for a folded line is broken after one of these, because an address or a
/// path is easier to read that way.
const BREAKS: &str = "/-_.,;:&=?";

/// What becomes of a word that is longer than a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LongWord {
    /// It is broken, so that no line is too long.
    #[default]
    Broken,
    /// It stays whole, on a line of its own, because a terminal then copies it as it is. That
    /// matters for an address.
    Whole,
}

/// A part of a paragraph: text, or a forced line break.
#[derive(Clone, Debug)]
pub(crate) enum InlinePiece {
    Text(StyledSpan),
    Break,
}

/// A grapheme cluster in its style.
type StyledGrapheme<'a> = (&'a str, Style);

/// Splits a line into the rows that it takes on a terminal of that width, at the terminal's own
/// breaks.
pub(crate) fn split_into_rows(line: &StyledLine, width: usize) -> Vec<StyledLine> {
    let mut rows = vec![StyledLine::default()];
    let mut column = 0;
    for (text, style) in line.spans.iter().flat_map(styled_graphemes) {
        let columns = text_columns(text);
        if column + columns > width && column > 0 {
            rows.push(StyledLine::default());
            column = 0;
        }
        column += columns;
        rows.last_mut().expect("there is a first row").push(text, style);
    }
    rows
}

fn styled_graphemes(span: &StyledSpan) -> impl Iterator<Item = StyledGrapheme<'_>> {
    span.text.graphemes(true).map(|text| (text, span.style))
}

/// Wraps the pieces of a paragraph into lines of at most `width` columns. A word longer than a line
/// begins a new one. Spaces at the beginning are dropped.
pub(crate) fn wrap_pieces(pieces: &[InlinePiece], width: usize) -> Vec<StyledLine> {
    let mut wrapper = LineWrapper { width, ..LineWrapper::default() };
    for piece in pieces {
        match piece {
            InlinePiece::Text(span) => {
                styled_graphemes(span).for_each(|grapheme| wrapper.push_grapheme(grapheme))
            }
            InlinePiece::Break => wrapper.end_line(),
        }
    }
    wrapper.finish()
}

/// Folds a line to `width` columns, with `indent` columns before the continued lines. A word longer
/// than a line begins where the one before it ends. Spaces at the beginning are kept, and a command
/// in backticks is not broken if it fits a line.
pub(crate) fn fold_line(
    line: &StyledLine,
    width: usize,
    indent: usize,
    long_word: LongWord,
) -> Vec<StyledLine> {
    let mut wrapper =
        LineWrapper { width, indent, is_fold: true, long_word, ..LineWrapper::default() };
    let graphemes: Vec<_> = line.spans.iter().flat_map(styled_graphemes).collect();
    let mut quoted_until = 0;
    for (index, grapheme) in graphemes.iter().enumerate() {
        if grapheme.0 == "`" && index >= quoted_until {
            quoted_until = quote_end(&graphemes, index, width.saturating_sub(indent));
        }
        match index < quoted_until {
            true => wrapper.push_letter(*grapheme),
            false => wrapper.push_grapheme(*grapheme),
        }
    }
    wrapper.finish()
}

/// Where the quotation ends whose backtick is at `begin`, or `begin` if it is wider than `room`.
fn quote_end(graphemes: &[StyledGrapheme<'_>], begin: usize, room: usize) -> usize {
    let rest = &graphemes[begin + 1..];
    let Some(length) = rest.iter().position(|(text, _)| *text == "`") else { return begin };
    let columns: usize = rest[..length].iter().map(|(text, _)| text_columns(text)).sum();
    if columns + 2 <= room { begin + length + 2 } else { begin }
}

/// Returns the widths of the columns in a table of `width` columns: as wanted, or with all wide
/// ones cut to the same width, which is at least `narrowest`. `gap` columns are between two.
///
/// Returns `None` if the columns would become narrower.
pub(crate) fn fit_column_widths(
    wanted: &[usize],
    width: usize,
    gap: usize,
    narrowest: usize,
) -> Option<Vec<usize>> {
    let room = width.checked_sub(gap * wanted.len().saturating_sub(1))?;
    let total = |cap: usize| wanted.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let cap = match wanted.iter().max() {
        Some(widest) if total(*widest) <= room => *widest,
        _ => (narrowest..room).rev().find(|cap| total(*cap) <= room)?,
    };
    Some(wanted.iter().map(|width| (*width).min(cap)).collect())
}

fn word_width(word: &[StyledGrapheme<'_>]) -> usize {
    word.iter().map(|(text, _)| text_columns(text)).sum()
}

/// The parts of a word that should not be broken. Each but the last ends with punctuation.
fn word_parts<'w, 'a>(
    word: &'w [StyledGrapheme<'a>],
) -> impl Iterator<Item = &'w [StyledGrapheme<'a>]> {
    word.chunk_by(|(text, _), (next, _)| !BREAKS.contains(text) || BREAKS.contains(next))
}

#[derive(Default)]
struct LineWrapper<'a> {
    width: usize,
    /// Columns before each line but the first.
    indent: usize,
    /// Whether a line is folded, as opposed to a paragraph that is filled.
    is_fold: bool,
    long_word: LongWord,
    done: Vec<StyledLine>,
    line: StyledLine,
    column: usize,
    /// The spaces before the word. They are dropped at a line break.
    space: Vec<StyledGrapheme<'a>>,
    /// The current unbreakable text.
    word: Vec<StyledGrapheme<'a>>,
    word_columns: usize,
    /// Whether the last character was wide. If so, the word may end here.
    after_wide: bool,
}

impl<'a> LineWrapper<'a> {
    fn push_grapheme(&mut self, grapheme: StyledGrapheme<'a>) {
        if grapheme.0 == " " {
            self.end_word();
            self.space.push(grapheme);
        } else {
            self.push_letter(grapheme);
        }
    }

    fn push_letter(&mut self, grapheme: StyledGrapheme<'a>) {
        let columns = text_columns(grapheme.0);
        let is_wide = columns > 1;
        if (is_wide || self.after_wide) && !CLOSING.contains(grapheme.0) {
            self.end_word();
        }
        self.after_wide = is_wide;
        self.word_columns += columns;
        self.word.push(grapheme);
    }

    fn end_word(&mut self) {
        self.after_wide = false;
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let space = std::mem::take(&mut self.space);
        let word_columns = std::mem::take(&mut self.word_columns);
        let end = self.column + space.len();
        let moves = !self.is_fold
            || self.long_word == LongWord::Whole
            || self.indent + word_columns <= self.width
            || end >= self.width;
        if !self.is_line_empty() && moves && end + word_columns > self.width {
            self.next_line();
        }
        if !self.is_line_empty() || (self.is_fold && self.done.is_empty()) {
            self.place_word(&space);
        }
        self.place_word(&word);
    }

    /// Adds a word to the line and breaks it if it is wider than a line.
    fn place_word(&mut self, word: &[StyledGrapheme<'a>]) {
        let has_room = self.column + word_width(word) <= self.width;
        if has_room || !self.is_fold {
            return self.place_part(word);
        }
        if self.long_word == LongWord::Whole {
            self.column += word_width(word);
            return word.iter().for_each(|(text, style)| self.line.push(text, *style));
        }
        for part in word_parts(word) {
            let columns = word_width(part);
            let fits_next = self.indent + columns <= self.width;
            if fits_next && !self.is_line_empty() && self.column + columns > self.width {
                self.next_line();
            }
            self.place_part(part);
        }
    }

    fn place_part(&mut self, part: &[StyledGrapheme<'a>]) {
        for (text, style) in part {
            let columns = text_columns(text);
            if !self.is_line_empty() && self.column + columns > self.width {
                self.next_line();
            }
            self.column += columns;
            self.line.push(text, *style);
        }
    }

    fn is_line_empty(&self) -> bool {
        self.column == if self.done.is_empty() { 0 } else { self.indent }
    }

    fn next_line(&mut self) {
        self.done.push(std::mem::take(&mut self.line));
        self.column = self.indent;
        if self.indent > 0 {
            self.line.push(&" ".repeat(self.indent), Style::new());
        }
    }

    fn end_line(&mut self) {
        self.end_word();
        self.space.clear();
        self.next_line();
    }

    fn finish(mut self) -> Vec<StyledLine> {
        self.end_word();
        if !self.line.spans.is_empty() {
            self.done.push(self.line);
        }
        self.done
    }
}
