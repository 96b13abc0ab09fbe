//! Renders a model's Markdown as lines for a terminal, even while it is still arriving.
//!
//! [`MarkdownStream`] is the only entry point. It accepts text in pieces and returns the final
//! lines and those that may still change. [`render_markdown`] is a stream that receives the whole
//! text, so an answer looks the same when it is shown again later.
//!
//! The text is hostile. Characters that a terminal would interpret are made visible where text is
//! added (`inline::InlineContent::text`, `block::code_line`). Addresses of links and images are
//! always shown: their text may be deceptive. No part of the text is omitted.
//!
//! A link whose address is defined elsewhere (`[text][name]`) and the line with the definition are
//! both shown as written. The definition may not have arrived when the link is shown.

mod block;
mod inline;
mod partial_line;
mod scan;
mod stream;
mod syntax;
mod table;
mod theme;

#[cfg(test)]
mod tests;

pub use stream::MarkdownStream;

use crate::style::StyledLine;

/// Narrowest layout, in columns. A narrower one has no room for a mark and a wide character. A
/// narrower terminal wraps the lines itself.
pub const WIDTH_COLUMNS_MIN: usize = 8;

/// Returns a whole text as lines of at most `width` columns.
///
/// Lines of code may be longer. The terminal wraps them, so a copied line stays intact.
pub fn render_markdown(text: &str, width: usize) -> Vec<StyledLine> {
    let mut stream = MarkdownStream::new();
    stream.push(text);
    stream.finish(width)
}
