//! A screen whose lowest lines are live while an answer arrives.
//!
//! Final lines scroll up like any output and are never touched again. Below them are the end of the
//! answer, which may still change, and a status line. Both are redrawn in place and leave no trace.
//! On a pipe or a dumb terminal the text passes through as it arrives.
//!
//! A [`Screen`] has no thread, clock or terminal of its own. It writes to a sink, receives the
//! terminal's size, and advances its spinner when [`Screen::tick`] passes the time.

mod live;
mod passing;
mod region;
mod status;

#[cfg(test)]
mod tests;

use std::{io, time::Duration};

use sallyport_contract::text;

pub use status::{Activity, Status};

use self::{live::Live, passing::Passing};
use crate::style::{Colour, Line};

/// Columns assumed for a terminal that does not report its size.
const COLUMNS_UNKNOWN: u16 = 80;

/// Rows assumed for a terminal that does not report its size.
const ROWS_UNKNOWN: u16 = 24;

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: u16,
    rows: u16,
}

impl Size {
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
pub enum Look {
    /// Text only: a file, a pipe, or a terminal without escape sequences.
    Passing,
    /// A terminal with a movable cursor.
    Live(Colour),
}

impl Look {
    /// Returns the capabilities of an output, from whether it is a terminal and from the values of
    /// `TERM` and `NO_COLOR`.
    pub fn of(is_terminal: bool, term: Option<&str>, no_color: Option<&str>) -> Self {
        // Terminals on Windows do not set `TERM`.
        let obeys = term.map_or(cfg!(windows), |term| term != "dumb" && !term.is_empty());
        match no_color {
            _ if !is_terminal || !obeys => Self::Passing,
            Some(wish) if !wish.is_empty() => Self::Live(Colour::Off),
            _ => Self::Live(Colour::On),
        }
    }
}

/// The byte that rings a terminal's bell.
const BELL: &[u8] = b"\x07";

/// Source of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Answer,
    Reasoning,
}

/// A terminal or other output with an answer that is arriving.
///
/// The cursor must be at the beginning of a line when a screen is created and after any other
/// output to the terminal, which is allowed after [`Screen::finish`].
///
/// ```
/// use sallyport_terminal::screen::{Look, Screen, Size};
///
/// let mut out = Vec::new();
/// let look = Look::of(false, Some("xterm"), None);
/// let mut screen = Screen::new(&mut out, Size::new(80, 24), look);
/// screen.text("# Pas")?;
/// screen.text("sing")?;
/// screen.finish()?;
/// assert_eq!(out, b"# Passing\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    size: Size,
    form: Form,
    status: Option<Status>,
    now: Duration,
}

#[derive(Debug)]
enum Form {
    Passing(Passing),
    Live(Live),
}

impl<W: io::Write> Screen<W> {
    /// Creates a screen with an empty live region.
    pub fn new(out: W, size: Size, look: Look) -> Self {
        let form = match look {
            Look::Passing => Form::Passing(Passing::default()),
            Look::Live(colour) => Form::Live(Live::new(colour)),
        };
        Self { out, size, form, status: None, now: Duration::ZERO }
    }

    /// Shows the next piece of the answer, which is Markdown.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub fn text(&mut self, piece: &str) -> io::Result<()> {
        self.speak(Voice::Answer, piece)
    }

    /// Shows the next piece of the reasoning, fainter than the answer.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn reasoning(&mut self, piece: &str) -> io::Result<()> {
        self.speak(Voice::Reasoning, piece)
    }

    /// Writes lines above the live region.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn print(&mut self, lines: &[Line]) -> io::Result<()> {
        match &mut self.form {
            Form::Passing(passing) => passing.lines(&mut self.out, lines),
            Form::Live(live) => {
                live.interrupt();
                self.draw(lines)
            }
        }
    }

    /// Writes plain text above the live region, with its own line breaks.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn note(&mut self, note: &str) -> io::Result<()> {
        let lines: Vec<_> = note.lines().map(|line| Line::plain(text::escape_line(line))).collect();
        self.print(&lines)
    }

    /// Rings the terminal's bell. Does nothing if the output is not a terminal.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn ring(&mut self) -> io::Result<()> {
        match self.form {
            Form::Passing(_) => Ok(()),
            Form::Live(_) => {
                self.out.write_all(BELL)?;
                self.out.flush()
            }
        }
    }

    /// Sets or clears the status line.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn status(&mut self, status: Option<Status>) -> io::Result<()> {
        self.status = status;
        self.draw(&[])
    }

    /// Advances the spinner and the elapsed time.
    ///
    /// `now` is the time since a fixed moment, the same one that [`Status::since`] counts from.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn tick(&mut self, now: Duration) -> io::Result<()> {
        self.now = now;
        self.draw(&[])
    }

    /// Sets a new size of the terminal and redraws the live region.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn resize(&mut self, size: Size) -> io::Result<()> {
        if self.size == size {
            return Ok(());
        }
        self.size = size;
        if let Form::Live(live) = &mut self.form {
            self.out.write_all(live.clear().as_bytes())?;
        }
        self.draw(&[])
    }

    /// Ends the arriving text, so that all of it is final. The status stays.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn settle(&mut self) -> io::Result<()> {
        match &mut self.form {
            Form::Passing(passing) => passing.settle(&mut self.out),
            Form::Live(live) => {
                let rest = live.settle(self.size);
                self.draw(&rest)
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
    /// See [`Screen::text`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.status = None;
        self.settle()?;
        if let Form::Live(live) = &mut self.form {
            live.interrupt();
        }
        Ok(())
    }

    /// Returns the current size.
    pub fn size(&self) -> Size {
        self.size
    }

    fn speak(&mut self, voice: Voice, piece: &str) -> io::Result<()> {
        match &mut self.form {
            Form::Passing(passing) => passing.text(&mut self.out, voice, piece),
            Form::Live(live) => {
                let mut lines = live.listen(voice, self.size);
                lines.extend(live.push(piece, self.size));
                if lines.is_empty() && live.is_costly() { Ok(()) } else { self.draw(&lines) }
            }
        }
    }

    /// Writes final lines and the live region below them.
    fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        let Form::Live(live) = &mut self.form else { return Ok(()) };
        let status = self.status.as_ref().map(|status| status.line(self.now, self.size.columns()));
        let codes = live.draw(lines, status, self.size);
        if codes.is_empty() {
            return Ok(());
        }
        self.out.write_all(codes.as_bytes())?;
        self.out.flush()
    }
}
