//! Files that a person sends along: `@photo.png` in a line, or named by a flag.
//!
//! A mention counts only at the beginning of a word and only if such a file exists; anything else
//! stays text, and the person is told which words looked like a file and are none. What a file holds
//! is decided by its first bytes, not by its name: a name helps only where the bytes leave it open.
//! Files are reached through [`Files`], so that finding mentions can be tested without any.

mod error;
mod files;
mod media;
mod mention;
mod read;

#[cfg(test)]
mod tests;

pub use error::AttachError;
pub use files::{Disk, Files, Found};
pub use media::{Media, media};
pub use mention::{Mention, Mentions, mentions};
pub use read::{Attached, attach, attach_all, attach_audio};
