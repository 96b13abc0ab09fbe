//! State: keys and values that plugins store, separate for each plugin and user.
//!
//! Every change is one commit that also updates the owner's byte count, so the count never drifts
//! from the rows, even if a process is killed. Versions of keys come from a counter of the owner
//! that only grows and outlives the keys, so a version is never used twice.
//!
//! An expired key is invisible to every reader, and is deleted with the next change.

use sallyport_contract::{
    async_trait,
    services::{DataOwner, StateStore, StateStoreError, StateWrite, WriteCondition},
};

use crate::error::StoreError;

/// An owner, and how much it stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateOwner {
    /// The plugin and the user.
    pub owner: DataOwner,
    /// The number of keys.
    pub keys: u64,
    /// Bytes of all keys and values.
    pub bytes: u64,
}

/// The state of all plugins. Every method fails if the database cannot be used.
#[async_trait]
pub trait PersistentStateStore: StateStore {
    /// Lists the owners that store anything, sorted by plugin and user.
    async fn list_owners(&self) -> Result<Vec<StateOwner>, StoreError>;

    /// Deletes all keys of an owner, and returns their number.
    async fn clear_owner(&self, owner: &DataOwner) -> Result<usize, StoreError>;
}

impl From<StoreError> for StateStoreError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// An owner's row before a change.
pub(crate) struct StateOwnerRow {
    pub(crate) key: i64,
    pub(crate) version: u64,
    pub(crate) bytes: u64,
}

/// A key's row before a change.
pub(crate) struct StateKeyRow {
    pub(crate) version: u64,
    pub(crate) bytes: u64,
}

impl StateOwnerRow {
    /// Checks a write against the row of its key, and returns the bytes that the owner has then.
    ///
    /// # Errors
    ///
    /// The key is not as expected, or the value exceeds the quota.
    pub(crate) fn check_write(
        &self,
        present: Option<StateKeyRow>,
        key: &str,
        write: &StateWrite,
    ) -> Result<u64, StateStoreError> {
        let had = present.as_ref().map_or(0, |present| present.bytes);
        let needed = key.len() as u64 + write.value.len() as u64;
        let bytes = self.bytes.saturating_sub(had).saturating_add(needed);
        let current_version = present.map(|present| present.version);
        let fits = match write.expected {
            WriteCondition::Anything => true,
            WriteCondition::Nothing => current_version.is_none(),
            WriteCondition::Version(version) => current_version == Some(version),
        };
        if !fits {
            return Err(StateStoreError::Conflict { current_version });
        }
        if bytes > write.quota_bytes {
            return Err(StateStoreError::QuotaReached { needed: bytes, quota: write.quota_bytes });
        }
        Ok(bytes)
    }
}

/// Returns when a value that is written now expires, in milliseconds since 1970.
pub(crate) fn expiry_ms(write: &StateWrite, now_ms: u64) -> Option<u64> {
    let lifetime = write.expires_in?;
    Some(now_ms.saturating_add(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX)))
}

/// Returns the upper bound of the names with a prefix. The last byte of UTF-8 text is never 255, so
/// it can be incremented.
pub(crate) fn prefix_upper_bound(prefix: &str) -> Option<Vec<u8>> {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut()? += 1;
    Some(end)
}
