//! A model's Markdown as lines for a terminal, also while it is still arriving.
//!
//! [`Stream`] is the one way in: it takes text in pieces, says which lines are final and which may
//! still change. [`render`] is a stream that got everything at once, so what was streamed and what
//! is shown again later look the same.
//!
//! The text is hostile. What a terminal could obey is made visible where text is taken
//! (`inline::Inline::text`, `block::code_line`); addresses of links and images are always shown,
//! since their text may lie; nothing that was written is left out.
//!
//! A link whose address stands elsewhere (`[text][name]`) is shown as it was written, and so is the
//! line that holds the address: while the text arrives, what comes later cannot be known.

mod block;
mod inline;
mod mend;
mod scan;
mod stream;
mod syntax;
mod table;
mod theme;
mod wrap;

#[cfg(test)]
mod tests;

pub use stream::Stream;
pub(crate) use wrap::rows;

use crate::style::Line;

/// The narrowest layout that is made, in columns: less has no room for a mark and a wide character
/// beside it. A narrower terminal wraps such lines itself.
pub const WIDTH_COLUMNS_MIN: usize = 8;

/// Returns the whole of a text as lines of at most `width` columns, except for lines of code, which
/// are never broken: a terminal wraps them, and a copy of them is whole.
pub fn render(text: &str, width: usize) -> Vec<Line> {
    let mut stream = Stream::new();
    stream.push(text);
    stream.finish(width)
}
