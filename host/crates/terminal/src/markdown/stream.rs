//! Markdown as it arrives: final lines, and lines that may still change.

use super::{
    WIDTH_COLUMNS_MIN, block,
    partial_line::complete_partial_line,
    scan::{MarkdownPart, MarkdownPartBody, MarkdownScanner},
};
use crate::style::StyledLine;

/// A text that arrives in pieces.
///
/// [`MarkdownStream::take_final_lines`] never returns a line twice, and its lines never change.
/// Together with the lines of [`MarkdownStream::finish`] they do not depend on how the text was
/// split into pieces.
///
/// ```
/// use sallyport_terminal::markdown::MarkdownStream;
///
/// let mut stream = MarkdownStream::new();
/// stream.push("One.\n\nTwo **wo");
/// assert_eq!(stream.take_final_lines(40)[0].text(), "One.");
/// assert_eq!(stream.tail_lines(40)[1].text(), "Two wo");
/// stream.push("rds**.");
/// assert_eq!(stream.finish(40)[1].text(), "Two words.");
/// ```
#[derive(Clone, Debug, Default)]
pub struct MarkdownStream {
    scanner: MarkdownScanner,
    /// The incomplete last line.
    pending: String,
    /// Whether any line was returned. A gap is only written after one.
    has_output: bool,
    gap: bool,
}

impl MarkdownStream {
    /// Creates an empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next piece.
    pub fn push(&mut self, piece: &str) {
        self.pending.push_str(piece);
        let mut rest = std::mem::take(&mut self.pending);
        let mut start = 0;
        while let Some((line, next)) =
            split_first_line(&rest[start..], self.scanner.line_bytes_max())
        {
            self.scanner.scan_line(line);
            start += next;
        }
        self.pending = rest.split_off(start);
    }

    /// Returns the lines that became final since the last call, laid out for `width` columns.
    pub fn take_final_lines(&mut self, width: usize) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for part in self.scanner.take_parts() {
            self.gap |= part.gap;
            let body = layout_part(&part, width.max(WIDTH_COLUMNS_MIN));
            if body.is_empty() {
                continue;
            }
            if std::mem::take(&mut self.gap) && self.has_output {
                lines.push(StyledLine::default());
            }
            self.has_output = true;
            lines.extend(body);
        }
        lines
    }

    /// Returns the current form of the lines after the final ones.
    ///
    /// Ambiguous marks are withheld and open ones are closed, so the lines change little while more
    /// text arrives.
    pub fn tail_lines(&self, width: usize) -> Vec<StyledLine> {
        if self.scanner.is_at_table_head() {
            return Vec::new();
        }
        let mut ended = self.clone();
        ended.scanner.take_parts();
        ended.pending = complete_partial_line(&self.scanner, &self.pending);
        ended.finish(width)
    }

    /// Returns the size of the text that is not final, in bytes. [`MarkdownStream::tail_lines`]
    /// lays out this much.
    pub fn open_bytes(&self) -> usize {
        self.scanner.open_bytes() + self.pending.len()
    }

    /// Ends the text and returns the rest of its lines.
    pub fn finish(mut self, width: usize) -> Vec<StyledLine> {
        if !self.pending.is_empty() {
            self.scanner.scan_line(self.pending.trim_end_matches('\r'));
        }
        self.scanner.close_part();
        self.take_final_lines(width)
    }
}

/// Returns the first line and the offset of the next one. Returns `None` if the line is incomplete
/// and not yet too long.
///
/// The split depends only on the bytes, not on how they arrived.
fn split_first_line(text: &str, bytes_max: usize) -> Option<(&str, usize)> {
    let window = text.floor_char_boundary(bytes_max + 1);
    if let Some(end) = text[..window].find('\n') {
        let line = &text[..end];
        return Some((line.strip_suffix('\r').unwrap_or(line), end + 1));
    }
    if text.len() <= bytes_max {
        return None;
    }
    let end = text.floor_char_boundary(bytes_max);
    match text[..end].rfind(' ') {
        Some(space) if space > 0 => Some((&text[..space], space + 1)),
        _ => Some((&text[..end], end)),
    }
}

fn layout_part(part: &MarkdownPart, width: usize) -> Vec<StyledLine> {
    match &part.body {
        MarkdownPartBody::Blocks { source, number } => block::render_blocks(source, *number, width),
        MarkdownPartBody::Label(label) => block::label_lines(label, width),
        MarkdownPartBody::Code(code) => vec![block::code_line(code)],
    }
}
