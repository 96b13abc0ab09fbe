//! Files that a user attaches: `@photo.png` in a line, or named by a flag.
//!
//! A mention counts only at the beginning of a word and only if the file exists. Anything else
//! stays text, and the user is shown the words that looked like a file but are not. The type of a
//! file is detected from its contents, and from its name only if these are ambiguous. Files are
//! reached through [`FileSource`], so tests need none.

mod error;
mod files;
mod media;
mod mention;
mod read;

#[cfg(test)]
mod tests;

pub use error::AttachError;
pub use files::{FileSource, LocalFiles, PathKind};
pub use media::{MediaKind, detect_media};
pub use mention::{FileMentions, find_mentions};
pub use read::{LocalAttachment, attach_audio, attach_file, attach_files};
