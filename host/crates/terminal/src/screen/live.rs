//! State of a screen with a live region, and its output for each change.

use super::{Size, Voice, region::Region};
use crate::{
    markdown::{self, Stream},
    style::{Colour, Line},
};

/// Most open text that each piece lays out again, in bytes. Above this the next tick does it, so
/// that the work stays proportional to the text.
const DRAWN_AT_ONCE_BYTES_MAX: usize = 4 << 10;

/// State of a screen with a live region.
#[derive(Debug)]
pub(super) struct Live {
    colour: Colour,
    region: Region,
    /// The arriving text, with its voice.
    speech: Option<(Voice, Stream)>,
    /// Whether the last output was a text. If so, a blank line separates it from the next.
    spoke: bool,
    /// Whether this blank line is still to be written, above the first line of the text.
    owes_gap: bool,
}

impl Live {
    /// Creates a screen with an empty live region.
    pub(super) fn new(colour: Colour) -> Self {
        let region = Region::default();
        Self { colour, region, speech: None, spoke: false, owes_gap: false }
    }

    /// Switches to a voice. Returns the remaining lines of the previous one.
    pub(super) fn listen(&mut self, voice: Voice, size: Size) -> Vec<Line> {
        if self.speech.as_ref().is_some_and(|(speaking, _)| *speaking == voice) {
            return Vec::new();
        }
        let lines = self.settle(size);
        self.owes_gap = self.spoke;
        self.speech = Some((voice, Stream::new()));
        lines
    }

    /// Adds a piece of the text. Returns the lines that became final.
    pub(super) fn push(&mut self, piece: &str, size: Size) -> Vec<Line> {
        let Some((voice, stream)) = &mut self.speech else { return Vec::new() };
        stream.push(piece);
        let lines = voiced(*voice, stream.settled(size.columns()));
        self.below_gap(lines)
    }

    /// Ends the arriving text. Returns its remaining lines.
    pub(super) fn settle(&mut self, size: Size) -> Vec<Line> {
        let Some((voice, stream)) = self.speech.take() else { return Vec::new() };
        let lines = voiced(voice, stream.finish(size.columns()));
        self.below_gap(lines)
    }

    /// Records that other output follows the text.
    pub(super) fn interrupt(&mut self) {
        self.spoke = false;
        self.owes_gap = false;
    }

    /// Returns the codes that erase the region after a change of size.
    pub(super) fn clear(&mut self) -> String {
        self.region.clear()
    }

    /// Returns the codes that write final lines and the live region below them.
    pub(super) fn draw(&mut self, lines: &[Line], status: Option<Line>, size: Size) -> String {
        let written = |line: &Line| line.to_terminal(self.colour);
        let above: Vec<_> = lines.iter().map(written).collect();
        let alive = self.alive(status, size).iter().map(written).collect();
        self.region.draw(&above, alive)
    }

    /// Whether too much text is open to draw it with every piece.
    pub(super) fn is_costly(&self) -> bool {
        let open = self.speech.as_ref().map(|(_, stream)| stream.open_bytes());
        open.is_some_and(|bytes| bytes > DRAWN_AT_ONCE_BYTES_MAX)
    }

    /// Puts the pending blank line above the first lines.
    fn below_gap(&mut self, lines: Vec<Line>) -> Vec<Line> {
        if lines.is_empty() {
            return lines;
        }
        self.spoke = true;
        let gap = std::mem::take(&mut self.owes_gap).then(Line::default);
        gap.into_iter().chain(lines).collect()
    }

    /// Returns the live rows: as much of the text's end as fits, and the status.
    fn alive(&self, status: Option<Line>, size: Size) -> Vec<Line> {
        let Some((voice, stream)) = &self.speech else { return status.into_iter().collect() };
        let tail = voiced(*voice, stream.tail(size.columns()));
        let gap = (self.owes_gap && !tail.is_empty()).then(Line::default);
        let lines = gap.into_iter().chain(tail);
        let mut rows: Vec<_> =
            lines.flat_map(|line| markdown::rows(&line, size.columns())).collect();
        // Keep one row free, because a region as high as the screen would scroll its own top out of
        // reach.
        let room = size.rows().saturating_sub(1 + usize::from(status.is_some()));
        rows.drain(..rows.len().saturating_sub(room));
        rows.extend(status);
        rows
    }
}

fn voiced(voice: Voice, mut lines: Vec<Line>) -> Vec<Line> {
    if voice == Voice::Reasoning {
        for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
            span.style = span.style.dimmed();
        }
    }
    lines
}
