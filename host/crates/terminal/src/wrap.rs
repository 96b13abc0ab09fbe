//! Breaks text into lines whose width is measured in columns, not characters.
//!
//! A line breaks at spaces and next to wide characters, which need no spaces. A word longer than a
//! line breaks between grapheme clusters.

use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::{StyledLine, StyledSpan};

/// Wide closing punctuation, which cannot begin a line.
const CLOSING: &str = "、。，．・：；！？）］｝」』】〉》〕";

/// A part of a paragraph: text, or a forced line break.
#[derive(Clone, Debug)]
pub(crate) enum InlinePiece {
    Text(StyledSpan),
    Break,
}

/// A grapheme cluster in its style.
type StyledGrapheme<'a> = (&'a str, Style);

/// Returns the width of a text in columns.
///
/// Terminals disagree about joined characters. The larger of two measures is used, so that no line
/// is wider than planned.
pub(crate) fn text_columns(text: &str) -> usize {
    let separate_columns = text.chars().filter_map(UnicodeWidthChar::width).sum();
    UnicodeWidthStr::width(text).max(separate_columns)
}

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
/// than a line begins where the one before it ends. Spaces at the beginning are kept.
pub(crate) fn fold_line(line: &StyledLine, width: usize, indent: usize) -> Vec<StyledLine> {
    let mut wrapper = LineWrapper { width, indent, is_fold: true, ..LineWrapper::default() };
    let graphemes = line.spans.iter().flat_map(styled_graphemes);
    graphemes.for_each(|grapheme| wrapper.push_grapheme(grapheme));
    wrapper.finish()
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

#[derive(Default)]
struct LineWrapper<'a> {
    width: usize,
    /// Columns before each line but the first.
    indent: usize,
    /// Whether a line is folded, as opposed to a paragraph that is filled.
    is_fold: bool,
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
        let moves = !self.is_fold || self.indent + word_columns <= self.width || end >= self.width;
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
        for (text, style) in word {
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
