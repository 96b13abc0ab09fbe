//! Changes to a text by byte ranges, which keep everything else byte for byte.

use std::ops::Range;

/// The byte order mark that some editors put at the start of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A range of a text, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextEdit {
    range: Range<usize>,
    text: String,
}

impl TextEdit {
    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(at..at, text)
    }

    pub(super) fn remove(range: Range<usize>) -> Self {
        Self::replace(range, "")
    }

    pub(super) fn replace(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }
}

/// Returns the text with all changes made. Removals may overlap.
pub(super) fn apply_edits(text: &str, mut text_edits: Vec<TextEdit>) -> String {
    text_edits.sort_by_key(|text_edit| (text_edit.range.start, text_edit.range.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for TextEdit { range, text: new } in text_edits {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(&new);
        at = at.max(range.end);
    }
    out.push_str(&text[at..]);
    out
}

/// The start of the line that contains an offset.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    let first = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    text[..at].rfind('\n').map_or(first.min(at), |newline| newline + 1)
}

/// The end of the line that contains an offset, including its newline.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// The indentation of the line that contains an offset.
pub(super) fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The line ending near an offset: that of the line break before it, or else of the first in the
/// text.
pub(super) fn newline_style(text: &str, at: usize) -> &'static str {
    let newline = text[..at].rfind('\n').or_else(|| text.find('\n'));
    match newline {
        Some(newline) if text[..newline].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// Adds a line after another one, which may be the last and lack a newline.
pub(super) fn add_line(text: &str, at: usize, line: &str) -> TextEdit {
    let newline = newline_style(text, at);
    let before = if is_missing_final_newline(&text[..at]) { newline } else { "" };
    TextEdit::insert(at, format!("{before}{line}{newline}"))
}

/// Adds lines between two lines or at the end of the text, preceded by a blank line.
pub(super) fn add_block(text: &str, at: usize, block: &str) -> TextEdit {
    let newline = newline_style(text, at);
    let cut = if is_missing_final_newline(&text[..at]) { newline } else { "" };
    let blank = if is_blank_before(text, at) { "" } else { newline };
    TextEdit::insert(at, format!("{cut}{blank}{}", block.replace('\n', newline)))
}

/// Whether a text ends in the middle of a line.
fn is_missing_final_newline(text: &str) -> bool {
    !text.is_empty() && !text.ends_with(['\n', BYTE_ORDER_MARK])
}

/// Whether the line that ends at an offset is blank or missing.
fn is_blank_before(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let line =
        before.strip_suffix('\n').map_or(before, |line| &line[line_start(line, line.len())..]);
    line.trim_matches(BYTE_ORDER_MARK).trim().is_empty()
}

fn is_blank_after(text: &str, at: usize) -> bool {
    text[at..line_end(text, at)].trim().is_empty()
}

/// Removes whole lines. If blank lines surround them, one of these is removed too.
pub(super) fn remove_block(text: &str, lines: Range<usize>) -> TextEdit {
    let Range { start, end } = lines;
    let line_before = || line_start(text, start - 1)..end;
    let range = match (is_blank_before(text, start), is_blank_after(text, end)) {
        (true, true) if text[..start].ends_with('\n') => line_before(),
        (true, true) => start..line_end(text, end),
        (true, false) | (false, _) => start..end,
    };
    TextEdit::remove(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_in_the_order_of_the_text_whatever_theirs() {
        let text_edits = vec![
            TextEdit::remove(6..9),
            TextEdit::insert(0, "<"),
            TextEdit::replace(2..4, "x"),
            TextEdit::remove(5..7),
        ];
        assert_eq!(apply_edits("0123456789", text_edits), "<01x49");
    }

    #[test]
    fn a_block_leaves_with_one_of_the_blank_lines_around_it() {
        let rows = [
            ("a\n\n<b\n>\nc\n", "a\n\nc\n"),
            ("a\n\n<b\n>", "a\n"),
            ("<b\n>\nc\n", "c\n"),
            ("<b\n>", ""),
            ("a\n<b\n>\nc\n", "a\n\nc\n"),
            ("a\n\n<b\n>c\n", "a\n\nc\n"),
            ("a\r\n\r\n<b\r\n>\r\nc\r\n", "a\r\n\r\nc\r\n"),
            ("\u{feff}<b\n>\nc", "\u{feff}c"),
        ];
        for (marked, want) in rows {
            let text = marked.replace(['<', '>'], "");
            let start = marked.find('<').unwrap();
            let lines = start..marked.find('>').unwrap() - 1;
            assert_eq!(apply_edits(&text, vec![remove_block(&text, lines)]), want, "{marked:?}");
        }
    }

    #[test]
    fn a_block_comes_after_a_blank_line() {
        let rows = [
            ("", "b\n"),
            ("\u{feff}", "\u{feff}b\n"),
            ("a", "a\n\nb\n"),
            ("a\n", "a\n\nb\n"),
            ("a\n\n", "a\n\nb\n"),
            ("a\r\n", "a\r\n\r\nb\r\n"),
            ("a\r\n\r\n", "a\r\n\r\nb\r\n"),
            ("\n", "\nb\n"),
        ];
        for (text, want) in rows {
            assert_eq!(
                apply_edits(text, vec![add_block(text, text.len(), "b\n")]),
                want,
                "{text:?}"
            );
        }
    }
}
