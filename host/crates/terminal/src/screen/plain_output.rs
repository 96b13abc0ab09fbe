//! Output without a movable cursor: no escape sequences, and nothing is written twice.

use std::io;

use sallyport_contract::text::ProseEscaper;

use super::TextSource;
use crate::style::{ColourMode, StyledLine};

/// State that carries over between pieces.
#[derive(Debug, Default)]
pub(super) struct PlainOutput {
    /// The source of the current text.
    source: Option<TextSource>,
    /// Whether the last line is incomplete.
    is_mid_line: bool,
    /// Whether the last piece ended with a carriage return, which may be half of a line end.
    is_after_return: bool,
    /// The withheld end of the text.
    prose: ProseEscaper,
}

impl PlainOutput {
    /// Writes a piece of a text.
    pub(super) fn write_piece(
        &mut self,
        out: &mut impl io::Write,
        source: TextSource,
        piece: &str,
    ) -> io::Result<()> {
        if self.source.is_some_and(|last| last != source) {
            self.finish_text(out)?;
            out.write_all(b"\n")?;
        }
        self.source = Some(source);
        let mut piece = piece.replace("\r\n", "\n");
        if std::mem::take(&mut self.is_after_return) && !piece.starts_with('\n') {
            piece.insert(0, '\r');
        }
        if piece.ends_with('\r') {
            piece.pop();
            self.is_after_return = true;
        }
        let shown = self.prose.push(&piece);
        self.write_text(out, &shown)
    }

    /// Ends the current text and writes whole lines.
    pub(super) fn write_lines(
        &mut self,
        out: &mut impl io::Write,
        lines: &[StyledLine],
    ) -> io::Result<()> {
        self.finish_text(out)?;
        for line in lines {
            writeln!(out, "{}", line.to_terminal_text(ColourMode::Off))?;
        }
        out.flush()
    }

    /// Ends the current line and the text.
    pub(super) fn finish_text(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        self.is_after_return = false;
        self.source = None;
        let rest = self.prose.finish();
        self.write_text(out, &rest)?;
        if self.is_mid_line { self.write_text(out, "\n") } else { Ok(()) }
    }

    fn write_text(&mut self, out: &mut impl io::Write, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.is_mid_line = !text.ends_with('\n');
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
