//! State: keys and values that plugins store, separate for each plugin and user.
//!
//! Every change is one commit that also updates the owner's byte count, so the count never drifts
//! from the rows, even if a process is killed. Versions of keys come from a counter of the owner
//! that only grows and outlives the keys, so a version is never used twice.
//!
//! An expired key is invisible to every reader, and is deleted with the next change.

use sallyport_contract::{
    async_trait,
    services::{DataOwner, StateStore, StateStoreError},
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
