//! Pure Python packages from an index: found by name and version, checked against the index's own
//! digest, unpacked in memory, and kept.
//!
//! The index is one that the operator names in the configuration; none is built in. What a guest
//! asks for is a name and a version, nothing of it becomes part of an address or a path before it has
//! been checked. Only wheels that hold no machine code are taken (`…-none-any.whl`), and nothing of
//! them is run here.
//!
//! Suggested reading order: [`Index`], then `project`, `listing`, `wheel`, `kept`.

mod download;
mod index;
mod kept;
mod listing;
mod project;
mod wheel;

#[cfg(test)]
mod tests;

pub use index::{Index, IndexError};
