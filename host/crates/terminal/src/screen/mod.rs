//! The lowest lines of a terminal, which are alive while an answer arrives.
//!
//! What is final scrolls up as any output does and is never touched again. Below it stand the end
//! of the answer that may still change and one line that says what is being waited for; they are
//! drawn anew in their place, and leave no trace. Where nobody sees a cursor move (a pipe, a dumb
//! terminal) text passes through as it comes.
//!
//! A [`Screen`] has no thread, no clock and no terminal of its own: it writes to what it is given,
//! is told how large that is, and moves its spinner when [`Screen::tick`] says how late it is.

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

/// What a terminal that does not know its size is taken for, in columns.
const COLUMNS_UNKNOWN: u16 = 80;

/// What a terminal that does not know its size is taken for, in rows.
const ROWS_UNKNOWN: u16 = 24;

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: u16,
    rows: u16,
}

impl Size {
    /// Makes a size; 0 is what a terminal says that does not know it.
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

/// What the other end can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Text alone: a file, a pipe, or a terminal that obeys no codes.
    Passing,
    /// A terminal whose cursor can be moved.
    Live(Colour),
}

impl Look {
    /// Returns what the other end can show, from whether it is a terminal and from the values of
    /// the variables `TERM` and `NO_COLOR`.
    pub fn of(is_terminal: bool, term: Option<&str>, no_color: Option<&str>) -> Self {
        // On Windows no terminal says its name.
        let obeys = term.map_or(cfg!(windows), |term| term != "dumb" && !term.is_empty());
        match no_color {
            _ if !is_terminal || !obeys => Self::Passing,
            Some(wish) if !wish.is_empty() => Self::Live(Colour::Off),
            _ => Self::Live(Colour::On),
        }
    }
}

/// What makes a terminal ring.
const BELL: &[u8] = b"\x07";

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Answer,
    Reasoning,
}

/// A terminal, or what stands in its place, with an answer on its way.
///
/// The cursor has to be at the beginning of a line when a screen is made, and whenever somebody
/// else wrote to the terminal, which they may do after [`Screen::finish`].
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
    /// Makes a screen on which nothing is alive yet.
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
    /// If the terminal cannot be written to; so for all that follow.
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

    /// Writes lines above what is alive.
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

    /// Writes a plain text above what is alive, on as many lines as it has.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn note(&mut self, note: &str) -> io::Result<()> {
        let lines: Vec<_> = note.lines().map(|line| Line::plain(text::one_line(line))).collect();
        self.print(&lines)
    }

    /// Rings the terminal's bell. Where nobody watches, nothing rings.
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

    /// Says what is being waited for, or that nothing is.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn status(&mut self, status: Option<Status>) -> io::Result<()> {
        self.status = status;
        self.draw(&[])
    }

    /// Moves the spinner and the seconds on. `now` is the time since some moment that stays the
    /// same, the one that [`Status::since`] counts from too.
    ///
    /// # Errors
    ///
    /// See [`Screen::text`].
    pub fn tick(&mut self, now: Duration) -> io::Result<()> {
        self.now = now;
        self.draw(&[])
    }

    /// Tells that the terminal has another size now.
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

    /// Ends the text that is arriving: all of it is final. The status stays.
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

    /// Ends the text and takes away what is alive. The cursor is at the beginning of a line, and
    /// the terminal can be used by others until the next call.
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

    /// Returns how large the screen was said to be.
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

    /// Writes final lines, and what is alive below them.
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
