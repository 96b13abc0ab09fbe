//! A screen whose lowest lines are live while an answer arrives.
//!
//! Final lines scroll up like any output and are never touched again. Below them are the end of the
//! answer, which may still change, and a status line. Both are redrawn in place and leave no trace.
//! On a pipe or a dumb terminal the text passes through as it arrives.
//!
//! A [`TerminalScreen`] has no thread, clock or terminal of its own. It writes to a sink, receives
//! the terminal's size, and advances its spinner when [`TerminalScreen::advance_time`] passes the
//! time.

mod live;
mod plain_output;
mod region;
mod status;

#[cfg(test)]
mod tests;

use std::{io, time::Duration};

use sallyport_contract::text;

pub use status::{StatusActivity, StatusLine};

use self::{live::LiveScreen, plain_output::PlainOutput};
use crate::style::{ColourMode, StyledLine};

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

/// Capabilities of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputCapabilities {
    /// Text only: a file, a pipe, or a terminal without escape sequences.
    Plain,
    /// A terminal with a movable cursor.
    Live(ColourMode),
}

impl OutputCapabilities {
    /// Returns the capabilities of an output, from whether it is a terminal and from the values of
    /// `TERM` and `NO_COLOR`.
    pub fn from_environment(is_terminal: bool, term: Option<&str>, no_color: Option<&str>) -> Self {
        // Terminals on Windows do not set `TERM`.
        let supports_escapes =
            term.map_or(cfg!(windows), |term| term != "dumb" && !term.is_empty());
        match no_color {
            _ if !is_terminal || !supports_escapes => Self::Plain,
            Some(setting) if !setting.is_empty() => Self::Live(ColourMode::Off),
            _ => Self::Live(ColourMode::On),
        }
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

/// A terminal or other output with an answer that is arriving.
///
/// The cursor must be at the beginning of a line when a screen is created and after any other
/// output to the terminal, which is allowed after [`TerminalScreen::finish`].
///
/// ```
/// use sallyport_terminal::screen::{OutputCapabilities, TerminalScreen, TerminalSize};
///
/// let mut out = Vec::new();
/// let look = OutputCapabilities::from_environment(false, Some("xterm"), None);
/// let mut screen = TerminalScreen::new(&mut out, TerminalSize::new(80, 24), look);
/// screen.show_answer("# Pas")?;
/// screen.show_answer("sing")?;
/// screen.finish()?;
/// assert_eq!(out, b"# Passing\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TerminalScreen<W> {
    out: W,
    size: TerminalSize,
    mode: OutputMode,
    status: Option<StatusLine>,
    now: Duration,
}

#[derive(Debug)]
enum OutputMode {
    Plain(PlainOutput),
    Live(LiveScreen),
}

impl<W: io::Write> TerminalScreen<W> {
    /// Creates a screen with an empty live region.
    pub fn new(out: W, size: TerminalSize, capabilities: OutputCapabilities) -> Self {
        let mode = match capabilities {
            OutputCapabilities::Plain => OutputMode::Plain(PlainOutput::default()),
            OutputCapabilities::Live(colour) => OutputMode::Live(LiveScreen::new(colour)),
        };
        Self { out, size, mode, status: None, now: Duration::ZERO }
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
        match &mut self.mode {
            OutputMode::Plain(plain_output) => plain_output.write_lines(&mut self.out, lines),
            OutputMode::Live(live) => {
                live.mark_interrupted();
                self.draw_lines(lines)
            }
        }
    }

    /// Writes plain text above the live region, with its own line breaks.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn print_note(&mut self, note: &str) -> io::Result<()> {
        let lines: Vec<_> =
            note.lines().map(|line| StyledLine::plain(text::escape_line(line))).collect();
        self.print_lines(&lines)
    }

    /// Rings the terminal's bell. Does nothing if the output is not a terminal.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn ring_bell(&mut self) -> io::Result<()> {
        match self.mode {
            OutputMode::Plain(_) => Ok(()),
            OutputMode::Live(_) => {
                self.out.write_all(BELL)?;
                self.out.flush()
            }
        }
    }

    /// Sets or clears the status line.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn set_status(&mut self, status: Option<StatusLine>) -> io::Result<()> {
        self.status = status;
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
        if let OutputMode::Live(live) = &mut self.mode {
            self.out.write_all(live.clear_region().as_bytes())?;
        }
        self.draw_lines(&[])
    }

    /// Ends the arriving text, so that all of it is final. The status stays.
    ///
    /// # Errors
    ///
    /// See [`TerminalScreen::show_answer`].
    pub fn finish_text(&mut self) -> io::Result<()> {
        match &mut self.mode {
            OutputMode::Plain(plain_output) => plain_output.finish_text(&mut self.out),
            OutputMode::Live(live) => {
                let rest = live.finish_text(self.size);
                self.draw_lines(&rest)
            }
        }
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
        self.status = None;
        self.finish_text()?;
        if let OutputMode::Live(live) = &mut self.mode {
            live.mark_interrupted();
        }
        Ok(())
    }

    /// Returns the current size.
    pub fn size(&self) -> TerminalSize {
        self.size
    }

    fn show_text(&mut self, source: TextSource, piece: &str) -> io::Result<()> {
        match &mut self.mode {
            OutputMode::Plain(plain_output) => {
                plain_output.write_piece(&mut self.out, source, piece)
            }
            OutputMode::Live(live) => {
                let mut lines = live.switch_source(source, self.size);
                lines.extend(live.push_text(piece, self.size));
                if lines.is_empty() && live.is_costly_to_draw() {
                    Ok(())
                } else {
                    self.draw_lines(&lines)
                }
            }
        }
    }

    /// Writes final lines and the live region below them.
    fn draw_lines(&mut self, lines: &[StyledLine]) -> io::Result<()> {
        let OutputMode::Live(live) = &mut self.mode else { return Ok(()) };
        let status =
            self.status.as_ref().map(|status| status.render_line(self.now, self.size.columns()));
        let codes = live.draw(lines, status, self.size);
        if codes.is_empty() {
            return Ok(());
        }
        self.out.write_all(codes.as_bytes())?;
        self.out.flush()
    }
}
