//! Lexical search: the words of a text, and a BM25 index over them.
//!
//! Tool search and the offline matcher share the index. The store keeps its own index inside SQLite,
//! next to the records, and shares the knowledge of which scripts put no spaces between words.

mod index;
mod script;
mod words;

pub use index::{Index, Match, Weight};
pub use script::is_unspaced;
pub use words::words;
