//! State: keys and values that plugins store, separate for each plugin and user.
//!
//! Every change is one commit that also updates the owner's byte count, so the count never drifts
//! from the rows, even if a process is killed. Versions of keys come from a counter of the owner
//! that only grows and outlives the keys, so a version is never used twice.
//!
//! An expired key is invisible to every reader, and is deleted with the next change.

mod rows;

use std::time::Duration;

use sallyport_contract::services::{
    DataOwner, StateStore, StateStoreError, StateWrite, StoredValue,
};

use crate::{clock::StoreClock, error::StoreError, store::HostStore};

/// The tables of state. An owner's row stays when its keys are gone, because versions must not
/// repeat. Keys are stored as bytes, and are listed in byte order.
pub(crate) const TABLES: &str = "
    CREATE TABLE state_owner (
        key INTEGER PRIMARY KEY,
        plugin TEXT NOT NULL,
        user TEXT NOT NULL,
        version INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        UNIQUE (plugin, user)
    ) STRICT;
    CREATE TABLE state (
        owner INTEGER NOT NULL REFERENCES state_owner (key),
        name BLOB NOT NULL,
        value BLOB NOT NULL,
        version INTEGER NOT NULL,
        expires_ms INTEGER,
        PRIMARY KEY (owner, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX state_expires ON state (expires_ms) WHERE expires_ms IS NOT NULL;
";

/// The state of all plugins.
#[derive(Debug, Clone)]
pub struct PersistentStateStore {
    store: HostStore,
    clock: StoreClock,
}

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

impl PersistentStateStore {
    pub(crate) fn new(store: HostStore, clock: StoreClock) -> Self {
        Self { store, clock }
    }

    /// Lists the owners that store anything, sorted by plugin and user.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list_owners(&self) -> Result<Vec<StateOwner>, StoreError> {
        let now_ms = self.clock.now_ms();
        self.store.read_transaction(|connection| Ok(rows::list_owners(connection, now_ms)?))
    }

    /// Deletes all keys of an owner, and returns their number.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn clear_owner(&self, owner: &DataOwner) -> Result<usize, StoreError> {
        let now_ms = self.clock.now_ms();
        self.store.write_transaction(|connection| Ok(rows::clear_owner(connection, owner, now_ms)?))
    }
}

impl StateStore for PersistentStateStore {
    fn get(&self, owner: &DataOwner, key: &str) -> Result<Option<StoredValue>, StateStoreError> {
        let now_ms = self.clock.now_ms();
        let kept = self
            .store
            .read_transaction(|connection| Ok(rows::get_value(connection, owner, key, now_ms)?));
        kept.map_err(unavailable_error)
    }

    fn set(
        &self,
        owner: &DataOwner,
        key: &str,
        write: StateWrite<'_>,
    ) -> Result<u64, StateStoreError> {
        let now_ms = self.clock.now_ms();
        let expires_ms = write.expires_in.map(|time| now_ms.saturating_add(duration_ms(time)));
        let work = |connection: &_| {
            rows::purge_expired(connection, now_ms)?;
            Ok(rows::set_value(connection, owner, key, &write, expires_ms)?)
        };
        self.store.write_transaction(work).map_err(unavailable_error)?
    }

    fn delete(&self, owner: &DataOwner, key: &str) -> Result<bool, StateStoreError> {
        let now_ms = self.clock.now_ms();
        let work = |connection: &_| {
            rows::purge_expired(connection, now_ms)?;
            Ok(rows::delete_key(connection, owner, key)?)
        };
        self.store.write_transaction(work).map_err(unavailable_error)
    }

    fn list_keys(
        &self,
        owner: &DataOwner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateStoreError> {
        let now_ms = self.clock.now_ms();
        let page = rows::StateKeyPage { prefix, after, limit };
        let names = self
            .store
            .read_transaction(|connection| Ok(rows::list_keys(connection, owner, &page, now_ms)?));
        names.map_err(unavailable_error)
    }
}

fn duration_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unavailable_error(error: StoreError) -> StateStoreError {
    StateStoreError::Unavailable(error.to_string())
}
