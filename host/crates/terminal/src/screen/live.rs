//! What a screen with a live region remembers, and what it writes for each thing that happens.

use super::{Size, Voice, region::Region};
use crate::{
    markdown::{self, Stream},
    style::{Colour, Line},
};

/// Most open text that is laid out anew with every piece, in bytes: more of it waits for the next
/// tick, so that the work stays in proportion to what arrives.
const DRAWN_AT_ONCE_BYTES_MAX: usize = 4 << 10;

/// What a screen with a live region remembers.
#[derive(Debug)]
pub(super) struct Live {
    colour: Colour,
    region: Region,
    /// The text that is arriving.
    speech: Option<(Voice, Stream)>,
    /// What stands last is the end of a text: a blank line parts it from the next.
    spoke: bool,
    /// The blank line is still to be written, above the first line of the text.
    owes_gap: bool,
}

impl Live {
    /// Makes a screen on which nothing is alive.
    pub(super) fn new(colour: Colour) -> Self {
        let region = Region::default();
        Self { colour, region, speech: None, spoke: false, owes_gap: false }
    }

    /// Makes a voice the one that speaks; returns the lines of the one before it.
    pub(super) fn listen(&mut self, voice: Voice, size: Size) -> Vec<Line> {
        if self.speech.as_ref().is_some_and(|(speaking, _)| *speaking == voice) {
            return Vec::new();
        }
        let lines = self.settle(size);
        self.owes_gap = self.spoke;
        self.speech = Some((voice, Stream::new()));
        lines
    }

    /// Takes a piece of the text; returns the lines that became final.
    pub(super) fn push(&mut self, piece: &str, size: Size) -> Vec<Line> {
        let Some((voice, stream)) = &mut self.speech else { return Vec::new() };
        stream.push(piece);
        let lines = voiced(*voice, stream.settled(size.columns()));
        self.below_gap(lines)
    }

    /// Ends the text that is arriving; returns the rest of its lines.
    pub(super) fn settle(&mut self, size: Size) -> Vec<Line> {
        let Some((voice, stream)) = self.speech.take() else { return Vec::new() };
        let lines = voiced(voice, stream.finish(size.columns()));
        self.below_gap(lines)
    }

    /// Tells that something else stands below the text now.
    pub(super) fn interrupt(&mut self) {
        self.spoke = false;
        self.owes_gap = false;
    }

    /// Returns what erases the region on a screen whose size has changed.
    pub(super) fn clear(&mut self) -> String {
        self.region.clear()
    }

    /// Returns what writes final lines, and what is alive below them.
    pub(super) fn draw(&mut self, lines: &[Line], status: Option<Line>, size: Size) -> String {
        let written = |line: &Line| line.to_terminal(self.colour);
        let above: Vec<_> = lines.iter().map(written).collect();
        let alive = self.alive(status, size).iter().map(written).collect();
        self.region.draw(&above, alive)
    }

    /// Returns whether so much is open that it is not drawn with every piece.
    pub(super) fn is_costly(&self) -> bool {
        let open = self.speech.as_ref().map(|(_, stream)| stream.open_bytes());
        open.is_some_and(|bytes| bytes > DRAWN_AT_ONCE_BYTES_MAX)
    }

    /// Puts the blank line that is owed above the first lines.
    fn below_gap(&mut self, lines: Vec<Line>) -> Vec<Line> {
        if lines.is_empty() {
            return lines;
        }
        self.spoke = true;
        let gap = std::mem::take(&mut self.owes_gap).then(Line::default);
        gap.into_iter().chain(lines).collect()
    }

    /// Returns the rows that are alive: the end of the text, as far as there is room, and the
    /// status.
    fn alive(&self, status: Option<Line>, size: Size) -> Vec<Line> {
        let Some((voice, stream)) = &self.speech else { return status.into_iter().collect() };
        let tail = voiced(*voice, stream.tail(size.columns()));
        let gap = (self.owes_gap && !tail.is_empty()).then(Line::default);
        let lines = gap.into_iter().chain(tail);
        let mut rows: Vec<_> =
            lines.flat_map(|line| markdown::rows(&line, size.columns())).collect();
        // One row stays free: a region as high as the screen would push its own top out of reach.
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
