//! A record of a session: one thing that must not be lost.

use super::session::{Used, check_length};
use crate::error::StoreError;

/// Longest kind: one word that its writer chose.
const KIND_BYTES_MAX: usize = 64;

/// Longest body. An input carries its pictures and sounds within it, in a form that is a third
/// longer than they are; providers take some tens of megabytes of those.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A record that is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRecord<'r> {
    /// What the record is, in one word.
    pub kind: &'r str,
    /// The record as JSON.
    pub body: &'r str,
    /// What people would look for in it; empty for a record that nobody would. A body that is kept
    /// already stays findable by what it first came with.
    pub search_text: &'r str,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// What it adds to the figures of its session.
    pub used: Used,
}

/// A record as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its place in the session: 0 for the first one.
    pub seq: u64,
    /// What the record is, in one word.
    pub kind: String,
    /// The record as JSON.
    pub body: String,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// What it added to the figures of its session.
    pub used: Used,
}

impl NewRecord<'_> {
    /// # Errors
    ///
    /// A text is too long. What is too long to be searched is no error.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        check_length("the kind of a record", self.kind, KIND_BYTES_MAX)?;
        check_length("a record", self.body, BODY_BYTES_MAX)
    }
}
