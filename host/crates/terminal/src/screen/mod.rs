//! A screen whose lowest lines are live while an answer arrives.
//!
//! Final lines scroll up like any output and are never touched again. Below them are the end of the
//! answer, which may still change, and a status line. Both are redrawn in place and leave no trace.
//!
//! A [`TerminalScreen`] has no thread, clock or terminal of its own. It writes to a sink, receives
//! the terminal's size, and advances its spinner when [`TerminalScreen::advance_time`] passes the
//! time.

mod bottom;
mod live;
mod region;
mod status;

#[cfg(test)]
mod tests;

use std::{io, time::Duration};

pub use bottom::RunningCall;
pub use status::{ContextFill, StatusActivity, StatusLine};

use self::{bottom::BottomContents, live::LiveScreen};
use crate::{
    style::{ColourMode, StyledLine},
    typed_ahead::TypedAhead,
};

/// Columns assumed for a terminal that does not report its size.
const COLUMNS_UNKNOWN: u16 = 80;

/// Rows assumed for a terminal that does not report its size.
const ROWS_UNKNOWN: u16 = 24;

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    columns: u16,
    rows: u16,
}

impl TerminalSize {
    /// Creates a size. A terminal that does not know its size reports 0, which is replaced by a
    /// default.
    pub fn new(columns: u16, rows: u16) -> Self {
        let known = |value, unknown| if value == 0 { unknown } else { value };
        Self { columns: known(columns, COLUMNS_UNKNOWN), rows: known(rows, ROWS_UNKNOWN) }
    }

    /// Returns the width in columns.
    pub fn columns(self) -> usize {
        self.columns.into()
    }

    /// Returns the height in rows.
    pub fn rows(self) -> usize {
        self.rows.into()
    }
}

/// The byte that rings a terminal's bell.
const BELL: &[u8] = b"\x07";

/// Source of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSource {
    Answer,
    Reasoning,
}

/// A terminal with an answer that is arriving.
///
/// The cursor must be at the beginning of a line when a screen is created and after any other
/// output to the terminal, which is allowed after [`TerminalScreen::finish`].
///
/// ```
/// use sallyport_terminal::{
///     screen::{TerminalScreen, TerminalSize},
///     style::ColourMode,
/// };
///
/// let mut out = Vec::new();
/// let mut screen = TerminalScreen::new(&mut out, TerminalSize::new(80, 24), ColourMode::Off);
/// screen.show_answer("# Pas")?;
/// screen.show_answer("sing")?;
/// screen.finish()?;
/// assert!(String::from_utf8_lossy(&out).contains("# Passing\r\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TerminalScreen<W> {
    out: W,
    size: TerminalSize,
    live: LiveScreen,
    bottom: BottomContents,
    now: Duration,
}

impl<W: io::Write> TerminalScreen<W> {
    /// Creates a screen with an empty live region.
    pub fn new(out: W, size: TerminalSize, colour: ColourMode) -> Self {
        let (live, bottom) = (LiveScreen::new(colour), BottomContents::default());
        Self { out, size, live, bottom, now: Duration::ZERO }
    }

    /// Shows the next piece of the answer, which is Markdown.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub fn show_answer(&mut self, piece: &str) -> io::Result<()> {
        self.show_text(TextSource::Answer, piece)
    }

    /// Shows the next piece of the reasoning, fainter than the answer.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn show_reasoning(&mut self, piece: &str) -> io::Result<()> {
        self.show_text(TextSource::Reasoning, piece)
    }

    /// Writes lines above the live region.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn print_lines(&mut self, lines: &[StyledLine]) -> io::Result<()> {
        self.live.mark_interrupted();
        self.draw_lines(lines)
    }

    /// Writes the codes of a picture above the live region. They begin at the beginning of a line.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn print_picture(&mut self, codes: &str) -> io::Result<()> {
        self.live.mark_interrupted();
        self.out.write_all(self.live.clear_region().as_bytes())?;
        self.out.write_all(codes.as_bytes())?;
        self.out.write_all(b"\r\n")?;
        self.draw_lines(&[])?;
        self.out.flush()
    }

    /// Rings the terminal's bell.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn ring_bell(&mut self) -> io::Result<()> {
        self.out.write_all(BELL)?;
        self.out.flush()
    }

    /// Sets or clears the status line.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn set_status(&mut self, status: Option<StatusLine>) -> io::Result<()> {
        self.bottom.status = status;
        self.draw_lines(&[])
    }

    /// Replaces the rows of the running calls, which are above the status line.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn set_calls(&mut self, calls: Vec<RunningCall>) -> io::Result<()> {
        self.bottom.calls = calls;
        self.draw_lines(&[])
    }

    /// Replaces what the user typed ahead, which is below the status line.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn set_typed_ahead(&mut self, typed_ahead: TypedAhead) -> io::Result<()> {
        self.bottom.typed_ahead = typed_ahead;
        self.draw_lines(&[])
    }

    /// Advances the spinner and the elapsed time.
    ///
    /// `now` is the time since a fixed moment, the same one that [`StatusLine::since`] counts from.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn advance_time(&mut self, now: Duration) -> io::Result<()> {
        self.now = now;
        self.draw_lines(&[])
    }

    /// Sets a new size of the terminal and redraws the live region.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn resize(&mut self, size: TerminalSize) -> io::Result<()> {
        if self.size == size {
            return Ok(());
        }
        self.size = size;
        self.out.write_all(self.live.clear_region().as_bytes())?;
        self.draw_lines(&[])
    }

    /// Ends the arriving text, so that all of it is final. The status stays.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn finish_text(&mut self) -> io::Result<()> {
        let rest = self.live.finish_text(self.size);
        self.draw_lines(&rest)
    }

    /// Ends the text and removes the live region.
    ///
    /// The cursor is then at the beginning of a line, and other code may use the terminal until the
    /// next call.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.bottom = BottomContents::default();
        self.finish_text()?;
        self.live.mark_interrupted();
        Ok(())
    }

    fn show_text(&mut self, source: TextSource, piece: &str) -> io::Result<()> {
        let mut lines = self.live.switch_source(source, self.size);
        lines.extend(self.live.push_text(piece, self.size));
        if lines.is_empty() && self.live.is_costly_to_draw() {
            return Ok(());
        }
        self.draw_lines(&lines)
    }

    /// Writes final lines and the live region below them.
    fn draw_lines(&mut self, lines: &[StyledLine]) -> io::Result<()> {
        let bottom = self.bottom.render_rows(self.now, self.size.columns());
        let codes = self.live.draw(lines, bottom, self.size);
        if codes.is_empty() {
            return Ok(());
        }
        self.out.write_all(codes.as_bytes())?;
        self.out.flush()
    }
}
