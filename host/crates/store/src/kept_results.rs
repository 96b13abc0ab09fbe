//! Kept results: the long results of tool calls, whole, next to the records of their session.
//!
//! A record contains only the excerpt of such a result that the model received. The whole text is
//! here, under a number that counts up within the session. It belongs to the session: it is
//! removed with it, and a fork shares it without a second copy. Nothing reads it across sessions or
//! users, because each lookup names the session and its user.
//!
//! **Limits.** A session keeps its newest results within [`SESSION_BYTES_MAX`] and
//! [`SESSION_RESULTS_MAX`]; a new one displaces the oldest. The number of a displaced result is
//! never used again, not even by a fork, so a lookup can tell it from one that never existed.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// Longest text of one kept result, in bytes. It is read whole for a search, so this also bounds
/// the memory of a lookup.
pub const RESULT_BYTES_MAX: usize = 16 << 20;

/// Most bytes of all kept results of a session: as much as its largest record.
pub const SESSION_BYTES_MAX: u64 = 64 << 20;

/// Most kept results of a session. A model refers to the last few.
pub const SESSION_RESULTS_MAX: u64 = 1000;

/// A result that is about to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKeptResult {
    /// The text, without secrets.
    pub text: String,
    /// How many records the session had at that time. A fork with fewer records has no part in it.
    pub after_records: u64,
}

/// What became of a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptResultLookup {
    /// It is kept; this is its text.
    Found(String),
    /// Newer results displaced it.
    Displaced,
    /// The session never kept a result with this number.
    Unknown,
}

/// The kept results of all sessions. Every method fails if the database cannot be used.
#[async_trait]
pub trait KeptResultStore: Send + Sync {
    /// Keeps a result of a session and returns its number, from 1. The oldest results of the
    /// session are removed if it now has too many.
    ///
    /// # Errors
    ///
    /// No session of the user has this id, or the text is too long.
    async fn keep(
        &self,
        user: &str,
        session_id: &str,
        result: NewKeptResult,
    ) -> Result<u64, StoreError>;

    /// Looks up the result of a session with this number.
    ///
    /// # Errors
    ///
    /// No session of the user has this id, or the text is damaged.
    async fn find(
        &self,
        user: &str,
        session_id: &str,
        number: u64,
    ) -> Result<KeptResultLookup, StoreError>;
}

impl NewKeptResult {
    /// # Errors
    ///
    /// The text is too long.
    pub(crate) fn check_length(&self) -> Result<(), StoreError> {
        check_length("a kept result", &self.text, RESULT_BYTES_MAX)
    }
}
