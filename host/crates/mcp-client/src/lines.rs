//! Lines of limited length, from a stream that anybody may write to.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Lines of limited length. An empty line is skipped.
#[derive(Debug)]
pub struct BoundedLines<R> {
    input: BufReader<R>,
    /// The line that was read. The reader clears it.
    pub line: Vec<u8>,
    bytes_max: usize,
    /// Whether the rest of a line that is too long is left out.
    is_skipping: bool,
}

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// It is in `line`.
    Whole,
    /// It is too long, and left out.
    TooLong,
    /// The input ended within it.
    Cut,
    /// The input ended before it.
    Ended,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    /// Reads lines of at most `bytes_max` bytes.
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), bytes_max, is_skipping: false }
    }

    /// Reads a line. It may be dropped and called again, because what was read stays in `line`. An
    /// input that cannot be read has ended.
    pub async fn read_line(&mut self) -> LineEnd {
        loop {
            let Ok(bytes) = self.input.fill_buf().await else { return LineEnd::Ended };
            if bytes.is_empty() {
                let is_cut = !self.line.trim_ascii().is_empty() || self.is_skipping;
                self.line.clear();
                self.is_skipping = false;
                return if is_cut { LineEnd::Cut } else { LineEnd::Ended };
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            let is_too_long = !self.is_skipping && self.line.len() + piece.len() > self.bytes_max;
            if is_too_long {
                self.line = Vec::new();
            } else if !self.is_skipping {
                self.line.extend_from_slice(piece);
            }
            let consumed = piece.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            self.is_skipping = (self.is_skipping || is_too_long) && end.is_none();
            if is_too_long {
                return LineEnd::TooLong;
            }
            if end.is_some() {
                if !self.line.trim_ascii().is_empty() {
                    return LineEnd::Whole;
                }
                self.line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_at_their_limit_and_the_next_one_is_read() {
        use LineEnd::{Cut, Ended, TooLong, Whole};
        let rows: [(&str, &[(LineEnd, &str)]); 8] = [
            ("", &[(Ended, "")]),
            ("ab\ncd\n", &[(Whole, "ab"), (Whole, "cd"), (Ended, "")]),
            ("\n \r\nab\r\n", &[(Whole, "ab\r"), (Ended, "")]),
            ("12345678\n", &[(Whole, "12345678"), (Ended, "")]),
            ("123456789\nab\n", &[(TooLong, ""), (Whole, "ab"), (Ended, "")]),
            ("1234567890123456789012345\nab\n", &[(TooLong, ""), (Whole, "ab"), (Ended, "")]),
            ("ab\ncd", &[(Whole, "ab"), (Cut, ""), (Ended, "")]),
            ("1234567890123456789", &[(TooLong, ""), (Cut, ""), (Ended, "")]),
        ];
        for piece in [1, 3, 100] {
            for (input, want) in &rows {
                let input = BufReader::with_capacity(piece, input.as_bytes());
                let (line, is_skipping) = (Vec::new(), false);
                let mut lines = BoundedLines { input, line, bytes_max: 8, is_skipping };
                for (end, text) in *want {
                    assert_eq!(&lines.read_line().await, end, "{want:?}");
                    assert_eq!(lines.line.trim_ascii_end(), text.trim_end().as_bytes());
                    lines.line.clear();
                }
            }
        }
    }
}
