//! Tables. Columns are as wide as their cells, or narrower to fit the terminal. If even that does
//! not fit, the table becomes a list of records.

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::{
    theme,
    wrap::{Piece, columns, line_columns, wrap},
};
use crate::style::{Line, Span};

/// Separator between two columns.
const BAR: &str = " │ ";

/// Narrowest column that text is wrapped in, in terminal columns. A narrower one is unreadable.
const COLUMN_COLUMNS_MIN: usize = 8;

type Cell = Vec<Piece>;

/// A table that is being parsed. Its first row is the head.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table with one alignment per column.
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// Begins the next row.
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn push(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Extends the last cell of the last row.
    pub(super) fn extend_last(&mut self, more: Cell) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.extend(more);
        }
    }

    /// Lays out the table in at most `width` columns.
    pub(super) fn lines(&self, width: usize) -> Vec<Line> {
        match fit(&self.widths(), width) {
            Some(widths) => self.grid(&widths),
            None => self.records(width),
        }
    }

    /// Returns the width that each column needs.
    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                let lines = wrap(cell, usize::MAX);
                *width = lines.iter().map(line_columns).fold(*width, usize::max);
            }
        }
        widths
    }

    fn grid(&self, widths: &[usize]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.grid_row(row, widths));
            if index == 0 {
                let dashes: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::styled(dashes.join("─┼─"), theme::FAINT));
            }
        }
        lines
    }

    fn grid_row(&self, row: &[Cell], widths: &[usize]) -> Vec<Line> {
        let cells: Vec<_> =
            row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|index| self.grid_line(&cells, widths, index)).collect()
    }

    fn grid_line(&self, cells: &[Vec<Line>], widths: &[usize], index: usize) -> Line {
        let mut line = Line::default();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                line.push(BAR, theme::FAINT);
            }
            let text = cells.get(column).and_then(|lines| lines.get(index));
            let text = text.cloned().unwrap_or_default();
            let room = width.saturating_sub(line_columns(&text));
            let before = match self.alignments[column] {
                Alignment::Right => room,
                Alignment::Center => room / 2,
                Alignment::Left | Alignment::None => 0,
            };
            pad(&mut line, before);
            text.spans.iter().for_each(|span| line.push(&span.text, span.style));
            if column + 1 < widths.len() {
                pad(&mut line, room - before);
            }
        }
        line
    }

    /// Lays out each row as lines of "head: cell".
    fn records(&self, width: usize) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        if rows.is_empty() {
            return head.iter().flat_map(|cell| wrap(cell, width)).collect();
        }
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            let named =
                head.iter().zip(row).filter(|(name, cell)| !(name.is_empty() && cell.is_empty()));
            lines.extend(named.flat_map(|(name, cell)| wrap(&record(name, cell), width)));
        }
        lines
    }
}

fn pad(line: &mut Line, columns: usize) {
    if columns > 0 {
        line.push(&" ".repeat(columns), Style::new());
    }
}

fn record(name: &[Piece], cell: &[Piece]) -> Cell {
    let colon = Piece::Text(Span::new(": ", theme::TITLE));
    name.iter().cloned().chain([colon]).chain(cell.iter().cloned()).collect()
}

/// Returns the widths of the columns in a table of `width` columns: as wanted, or with all wide
/// ones cut to the same width.
///
/// Returns `None` if the columns would become unreadably narrow.
fn fit(wanted: &[usize], width: usize) -> Option<Vec<usize>> {
    let bars = columns(BAR) * wanted.len().saturating_sub(1);
    let room = width.checked_sub(bars)?;
    let total = |cap: usize| wanted.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let cap = match wanted.iter().max() {
        Some(widest) if total(*widest) <= room => *widest,
        _ => (COLUMN_COLUMNS_MIN..room).rev().find(|cap| total(*cap) <= room)?,
    };
    Some(wanted.iter().map(|width| (*width).min(cap)).collect())
}
