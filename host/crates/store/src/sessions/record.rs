//! A record of a session: one entry that must not be lost.

use super::session::{StoredUsage, check_length};
use crate::error::StoreError;

/// Longest kind: one word that the writer chooses.
const KIND_BYTES_MAX: usize = 64;

/// Longest body. An input contains its pictures and sounds in an encoding that makes them a third
/// longer; providers accept some tens of megabytes of them.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A record that is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRecord<'r> {
    /// The kind of the record, in one word.
    pub kind: &'r str,
    /// The record as JSON.
    pub body: &'r str,
    /// The text by which users search for the record; empty for a record that no user would search
    /// for. A body that is stored already keeps the search text that it was first stored with.
    pub search_text: &'r str,
    /// The time of the record, in milliseconds since 1970.
    pub at_ms: u64,
    /// The record's share of the session's usage.
    pub used: StoredUsage,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place in the session: 0 for the first record.
    pub seq: u64,
    /// The kind of the record, in one word.
    pub kind: String,
    /// The record as JSON.
    pub body: String,
    /// The time of the record, in milliseconds since 1970.
    pub at_ms: u64,
    /// The record's share of the session's usage.
    pub used: StoredUsage,
}

impl NewRecord<'_> {
    /// # Errors
    ///
    /// The kind or the body is too long. A search text of any length is accepted.
    pub(super) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("the kind of a record", self.kind, KIND_BYTES_MAX)?;
        check_length("a record", self.body, BODY_BYTES_MAX)
    }
}
