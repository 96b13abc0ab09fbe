//! Keys and values that a plugin stores.

use std::time::Duration;

use async_trait::async_trait;

use super::DataOwner;

/// A stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// The bytes.
    pub value: Vec<u8>,
    /// A number that differs after every change of the key.
    pub version: u64,
}

/// The state that a key must have before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCondition {
    /// Any state.
    Anything,
    /// The key does not exist.
    Nothing,
    /// The key exists in this version.
    Version(u64),
}

/// A value to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateWrite {
    /// The bytes.
    pub value: Vec<u8>,
    /// The state that the key must have.
    pub expected: WriteCondition,
    /// The time after which it expires.
    pub expires_in: Option<Duration>,
    /// Most bytes that all keys and values of the owner may occupy.
    pub quota_bytes: u64,
}

/// Why an operation failed. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateStoreError {
    /// The key is not in the expected state.
    #[error("the key has changed")]
    Conflict {
        /// The current version; `None` when the key does not exist.
        current_version: Option<u64>,
    },
    /// The value does not fit.
    #[error("{needed} bytes would be kept, at most {quota} are allowed")]
    QuotaReached {
        /// Bytes that all keys and values would occupy.
        needed: u64,
        /// The limit, in bytes.
        quota: u64,
    },
    /// The store is unavailable; the text is for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// Stores keys and values, separately for every owner. When a method returns, its change is on
/// disk.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// Returns the value of a key, unless it has expired.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn get(
        &self,
        owner: &DataOwner,
        key: &str,
    ) -> Result<Option<StoredValue>, StateStoreError>;

    /// Stores a value and returns its version.
    ///
    /// # Errors
    ///
    /// The key is not in the expected state, the value does not fit, or the store is unavailable.
    async fn set(
        &self,
        owner: &DataOwner,
        key: &str,
        write: StateWrite,
    ) -> Result<u64, StateStoreError>;

    /// Deletes a key. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn delete(&self, owner: &DataOwner, key: &str) -> Result<bool, StateStoreError>;

    /// Lists keys that begin with `prefix` and sort after `after`, in byte order.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn list_keys(
        &self,
        owner: &DataOwner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateStoreError>;
}
