//! Keys and values that a plugin keeps.

use std::time::Duration;

use super::Owner;

/// A value that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The bytes.
    pub value: Vec<u8>,
    /// Another number after every change of the key.
    pub version: u64,
}

/// What a key has to be before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anything or nothing.
    Anything,
    /// It does not exist.
    Nothing,
    /// It exists in this version.
    Version(u64),
}

/// A value that is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write<'a> {
    /// The bytes.
    pub value: &'a [u8],
    /// What the key has to be now.
    pub expected: Expected,
    /// After which time it is forgotten.
    pub expires_in: Option<Duration>,
    /// Most bytes that all keys and values of the owner may come to.
    pub quota_bytes: u64,
}

/// Why nothing came of it. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The key is not as it was expected.
    #[error("the key has changed")]
    Conflict {
        /// Its version now; `None` when it is gone.
        present: Option<u64>,
    },
    /// It does not fit.
    #[error("{needed} bytes would be kept, at most {quota} are allowed")]
    QuotaReached {
        /// What all keys and values would come to.
        needed: u64,
        /// What they may come to.
        quota: u64,
    },
    /// The store cannot be used; for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// Keeps keys and values, apart for every owner. It may block; whoever asks from async code does so
/// apart from it. What a method returned is on the disk.
pub trait StateStore: Send + Sync {
    /// Returns what is kept under a key and has not expired.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn get(&self, owner: &Owner, key: &str) -> Result<Option<Kept>, StateError>;

    /// Keeps a value and returns its version.
    ///
    /// # Errors
    ///
    /// The key is not as expected, the value does not fit, or the store cannot be used.
    fn set(&self, owner: &Owner, key: &str, write: Write<'_>) -> Result<u64, StateError>;

    /// Forgets a key. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn delete(&self, owner: &Owner, key: &str) -> Result<bool, StateError>;

    /// Lists keys that begin with `prefix` and come after `after`, in the order of their bytes.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn list(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateError>;
}
