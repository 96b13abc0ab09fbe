//! The width of text on a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the width of a text in columns.
///
/// Terminals disagree about joined characters. The larger of two measures is used, so that no line
/// is wider than planned.
pub(crate) fn text_columns(text: &str) -> usize {
    let separate_columns = text.chars().filter_map(UnicodeWidthChar::width).sum();
    UnicodeWidthStr::width(text).max(separate_columns)
}
