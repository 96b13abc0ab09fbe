//! Operations on files in the folders that a plugin is granted.
//!
//! Plugins differ in the paths they accept, in what they read and write, and in their wording. This
//! crate contains what they share: resolving paths, listing, writing, removing, and explaining
//! errors to a model.

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
