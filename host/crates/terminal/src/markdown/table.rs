//! Tables. Columns are as wide as their cells, or narrower to fit the terminal. If even that does
//! not fit, the table becomes a list of records.

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::theme;
use crate::{
    columns::text_columns,
    style::{StyledLine, StyledSpan},
    wrap::{InlinePiece, fit_column_widths, wrap_pieces},
};

/// Separator between two columns.
const BAR: &str = " │ ";

/// Narrowest column that text is wrapped in, in terminal columns. A narrower one is unreadable.
const COLUMN_COLUMNS_MIN: usize = 8;

type Cell = Vec<InlinePiece>;

/// A table that is being parsed. Its first row is the head.
#[derive(Debug)]
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl MarkdownTable {
    /// Creates a table with one alignment per column.
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// Begins the next row.
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn push_cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Extends the last cell of the last row.
    pub(super) fn extend_last_cell(&mut self, more: Cell) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.extend(more);
        }
    }

    /// Lays out the table in at most `width` columns.
    pub(super) fn layout_lines(&self, width: usize) -> Vec<StyledLine> {
        let wanted = self.column_widths();
        match fit_column_widths(&wanted, width, text_columns(BAR), COLUMN_COLUMNS_MIN) {
            Some(widths) => self.grid_lines(&widths),
            None => self.record_lines(width),
        }
    }

    /// Returns the width that each column needs.
    fn column_widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                let lines = wrap_pieces(cell, usize::MAX);
                *width = lines.iter().map(StyledLine::width).fold(*width, usize::max);
            }
        }
        widths
    }

    fn grid_lines(&self, widths: &[usize]) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.grid_row_lines(row, widths));
            if index == 0 {
                let dashes: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(StyledLine::styled(dashes.join("─┼─"), theme::FAINT));
            }
        }
        lines
    }

    fn grid_row_lines(&self, row: &[Cell], widths: &[usize]) -> Vec<StyledLine> {
        let cells: Vec<_> =
            row.iter().zip(widths).map(|(cell, width)| wrap_pieces(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|index| self.grid_line(&cells, widths, index)).collect()
    }

    fn grid_line(&self, cells: &[Vec<StyledLine>], widths: &[usize], index: usize) -> StyledLine {
        let mut line = StyledLine::default();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                line.push(BAR, theme::FAINT);
            }
            let text = cells.get(column).and_then(|lines| lines.get(index));
            let text = text.cloned().unwrap_or_default();
            let room = width.saturating_sub(text.width());
            let before = match self.alignments[column] {
                Alignment::Right => room,
                Alignment::Center => room / 2,
                Alignment::Left | Alignment::None => 0,
            };
            pad_line(&mut line, before);
            text.spans.iter().for_each(|span| line.push(&span.text, span.style));
            if column + 1 < widths.len() {
                pad_line(&mut line, room - before);
            }
        }
        line
    }

    /// Lays out each row as lines of "head: cell".
    fn record_lines(&self, width: usize) -> Vec<StyledLine> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        if rows.is_empty() {
            return head.iter().flat_map(|cell| wrap_pieces(cell, width)).collect();
        }
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(StyledLine::default());
            }
            let named =
                head.iter().zip(row).filter(|(name, cell)| !(name.is_empty() && cell.is_empty()));
            lines.extend(
                named.flat_map(|(name, cell)| wrap_pieces(&join_record(name, cell), width)),
            );
        }
        lines
    }
}

fn pad_line(line: &mut StyledLine, columns: usize) {
    if columns > 0 {
        line.push(&" ".repeat(columns), Style::new());
    }
}

fn join_record(name: &[InlinePiece], cell: &[InlinePiece]) -> Cell {
    let colon = InlinePiece::Text(StyledSpan::new(": ", theme::TITLE));
    name.iter().cloned().chain([colon]).chain(cell.iter().cloned()).collect()
}
