//! Lexical search: splits text into words and ranks documents with BM25.
//!
//! Tool search and the offline matcher share the index. The store has its own index inside SQLite,
//! next to the records, and uses only [`is_unspaced`].

mod index;
mod script;
mod words;

pub use index::{FieldWeight, LexicalIndex, LexicalMatch};
pub use script::is_unspaced;
pub use words::{contains_word, split_into_words};
