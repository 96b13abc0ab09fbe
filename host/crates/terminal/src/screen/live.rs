//! State of a screen with a live region, and its output for each change.

use super::{TerminalSize, TextSource, bottom::BottomRows, region::LiveRegion};
use crate::{
    markdown::MarkdownStream,
    style::{ColourMode, StyledLine},
    wrap,
};

/// Most open text that each piece lays out again, in bytes. Above this the next tick does it, so
/// that the work stays proportional to the text.
const IMMEDIATE_DRAW_BYTES_MAX: usize = 4 << 10;

/// State of a screen with a live region.
#[derive(Debug)]
pub(super) struct LiveScreen {
    colour: ColourMode,
    region: LiveRegion,
    /// The arriving text, with its voice.
    current_text: Option<(TextSource, MarkdownStream)>,
    /// Whether the last output was a text. If so, a blank line separates it from the next.
    last_was_text: bool,
    /// Whether this blank line is still to be written, above the first line of the text.
    is_gap_pending: bool,
}

impl LiveScreen {
    /// Creates a screen with an empty live region.
    pub(super) fn new(colour: ColourMode) -> Self {
        let region = LiveRegion::default();
        Self { colour, region, current_text: None, last_was_text: false, is_gap_pending: false }
    }

    /// Switches to a voice. Returns the remaining lines of the previous one.
    pub(super) fn switch_source(
        &mut self,
        source: TextSource,
        size: TerminalSize,
    ) -> Vec<StyledLine> {
        if self.current_text.as_ref().is_some_and(|(current_source, _)| *current_source == source) {
            return Vec::new();
        }
        let lines = self.finish_text(size);
        self.is_gap_pending = self.last_was_text;
        self.current_text = Some((source, MarkdownStream::new()));
        lines
    }

    /// Adds a piece of the text. Returns the lines that became final.
    pub(super) fn push_text(&mut self, piece: &str, size: TerminalSize) -> Vec<StyledLine> {
        let Some((source, stream)) = &mut self.current_text else { return Vec::new() };
        stream.push(piece);
        let lines = apply_source_style(*source, stream.take_final_lines(size.columns()));
        self.add_pending_gap(lines)
    }

    /// Ends the arriving text. Returns its remaining lines.
    pub(super) fn finish_text(&mut self, size: TerminalSize) -> Vec<StyledLine> {
        let Some((source, stream)) = self.current_text.take() else { return Vec::new() };
        let lines = apply_source_style(source, stream.finish(size.columns()));
        self.add_pending_gap(lines)
    }

    /// Records that other output follows the text.
    pub(super) fn mark_interrupted(&mut self) {
        self.last_was_text = false;
        self.is_gap_pending = false;
    }

    /// Returns the codes that erase the region after a change of size.
    pub(super) fn clear_region(&mut self) -> String {
        self.region.clear()
    }

    /// Returns the codes that write final lines and the live region below them.
    pub(super) fn draw(
        &mut self,
        lines: &[StyledLine],
        bottom: BottomRows,
        size: TerminalSize,
    ) -> String {
        let written = |line: &StyledLine| line.to_terminal_text(self.colour);
        let above: Vec<_> = lines.iter().map(written).collect();
        let BottomRows { rows: bottom_rows, cursor_column } = bottom;
        let mut rows: Vec<_> = self.live_rows(bottom_rows, size).iter().map(written).collect();
        if let (Some(column), Some(last)) = (cursor_column, rows.last_mut()) {
            last.push_str(&cursor_to_column(column));
        }
        self.region.draw(&above, rows)
    }

    /// Whether too much text is open to draw it with every piece.
    pub(super) fn is_costly_to_draw(&self) -> bool {
        let open = self.current_text.as_ref().map(|(_, stream)| stream.open_bytes());
        open.is_some_and(|bytes| bytes > IMMEDIATE_DRAW_BYTES_MAX)
    }

    /// Puts the pending blank line above the first lines.
    fn add_pending_gap(&mut self, lines: Vec<StyledLine>) -> Vec<StyledLine> {
        if lines.is_empty() {
            return lines;
        }
        self.last_was_text = true;
        let gap = std::mem::take(&mut self.is_gap_pending).then(StyledLine::default);
        gap.into_iter().chain(lines).collect()
    }

    /// Returns the live rows: as much of the text's end as fits, and the rows below it.
    fn live_rows(&self, bottom_rows: Vec<StyledLine>, size: TerminalSize) -> Vec<StyledLine> {
        let mut rows = self.text_rows(size);
        // Keep one row free, because a region as high as the screen would scroll its own top out of
        // reach. The last row is shown in any case.
        let room = size.rows().saturating_sub(1);
        let least = usize::from(!bottom_rows.is_empty());
        rows.extend(bottom_rows);
        rows.drain(..rows.len().saturating_sub(room.max(least)));
        rows
    }

    /// Returns the rows of the text that may still change.
    fn text_rows(&self, size: TerminalSize) -> Vec<StyledLine> {
        let Some((source, stream)) = &self.current_text else { return Vec::new() };
        let tail = apply_source_style(*source, stream.tail_lines(size.columns()));
        let gap = (self.is_gap_pending && !tail.is_empty()).then(StyledLine::default);
        let lines = gap.into_iter().chain(tail);
        lines.flat_map(|line| wrap::split_into_rows(&line, size.columns())).collect()
    }
}

/// Returns the codes that move the cursor within its row.
fn cursor_to_column(column: usize) -> String {
    if column == 0 { "\r".to_owned() } else { format!("\r\x1b[{column}C") }
}

fn apply_source_style(source: TextSource, mut lines: Vec<StyledLine>) -> Vec<StyledLine> {
    if source == TextSource::Reasoning {
        for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
            span.style = span.style.dimmed();
        }
    }
    lines
}
