//! State of a screen with a live region, and its output for each change.

use super::{TerminalSize, TextSource, region::LiveRegion};
use crate::{
    markdown::{self, MarkdownStream},
    style::{ColourMode, StyledLine},
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
        status: Option<StyledLine>,
        size: TerminalSize,
    ) -> String {
        let written = |line: &StyledLine| line.to_terminal_text(self.colour);
        let above: Vec<_> = lines.iter().map(written).collect();
        let region_rows = self.live_rows(status, size).iter().map(written).collect();
        self.region.draw(&above, region_rows)
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

    /// Returns the live rows: as much of the text's end as fits, and the status.
    fn live_rows(&self, status: Option<StyledLine>, size: TerminalSize) -> Vec<StyledLine> {
        let Some((source, stream)) = &self.current_text else {
            return status.into_iter().collect();
        };
        let tail = apply_source_style(*source, stream.tail_lines(size.columns()));
        let gap = (self.is_gap_pending && !tail.is_empty()).then(StyledLine::default);
        let lines = gap.into_iter().chain(tail);
        let mut rows: Vec<_> =
            lines.flat_map(|line| markdown::split_into_rows(&line, size.columns())).collect();
        // Keep one row free, because a region as high as the screen would scroll its own top out of
        // reach.
        let room = size.rows().saturating_sub(1 + usize::from(status.is_some()));
        rows.drain(..rows.len().saturating_sub(room));
        rows.extend(status);
        rows
    }
}

fn apply_source_style(source: TextSource, mut lines: Vec<StyledLine>) -> Vec<StyledLine> {
    if source == TextSource::Reasoning {
        for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
            span.style = span.style.dimmed();
        }
    }
    lines
}
