//! Paths inside the folders that a plugin is granted, and what is done there.
//!
//! Plugins that work on files differ in which paths they take, in what they read and write, and in
//! the words that fit their folders. The rest is the same for all of them, and is here: where a
//! path leads, listing, writing, removing, and telling a model why something failed.

mod changing;
mod explaining;
mod inside;
mod listing;

pub use changing::{Done, Written};
pub use explaining::Wording;
pub use inside::{Inside, PATH_BYTES_MAX, check, normal};
pub use listing::{ENTRIES_MAX, Entries};

#[cfg(test)]
mod tests;
