//! State: keys and values that plugins keep, apart for each plugin and user.
//!
//! Every change is one commit that also counts what its owner keeps, so the sum never drifts from
//! the rows, whenever a process is killed. A key's version is taken from a number of its owner that
//! only grows and outlives the keys: a version that somebody remembers never comes back.
//!
//! What has expired is not there for anybody, and leaves the disk with the next change.

mod rows;

use std::time::Duration;

use sallyport_contract::services::{Kept, Owner, StateError, StateStore, Write};

use crate::{clock::Clock, error::StoreError, store::Store};

/// The tables of state. An owner's row stays when its keys are gone, for the sake of its versions.
/// Keys are kept as bytes, in whose order they are listed.
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
pub struct State {
    store: Store,
    clock: Clock,
}

/// An owner, and how much it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateOwner {
    /// Whose it is.
    pub owner: Owner,
    /// How many keys.
    pub keys: u64,
    /// Bytes of all keys and values.
    pub bytes: u64,
}

impl State {
    pub(crate) fn new(store: Store, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// Lists those who keep something, by plugin and user.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn owners(&self) -> Result<Vec<StateOwner>, StoreError> {
        let now_ms = self.clock.now_ms();
        self.store.read(|connection| Ok(rows::owners(connection, now_ms)?))
    }

    /// Forgets all that an owner keeps, and returns how many keys there were.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn clear(&self, owner: &Owner) -> Result<usize, StoreError> {
        let now_ms = self.clock.now_ms();
        self.store.write(|connection| Ok(rows::clear(connection, owner, now_ms)?))
    }
}

impl StateStore for State {
    fn get(&self, owner: &Owner, key: &str) -> Result<Option<Kept>, StateError> {
        let now_ms = self.clock.now_ms();
        let kept = self.store.read(|connection| Ok(rows::get(connection, owner, key, now_ms)?));
        kept.map_err(unavailable)
    }

    fn set(&self, owner: &Owner, key: &str, write: Write<'_>) -> Result<u64, StateError> {
        let now_ms = self.clock.now_ms();
        let expires_ms = write.expires_in.map(|time| now_ms.saturating_add(millis(time)));
        let work = |connection: &_| {
            rows::purge(connection, now_ms)?;
            Ok(rows::set(connection, owner, key, &write, expires_ms)?)
        };
        self.store.write(work).map_err(unavailable)?
    }

    fn delete(&self, owner: &Owner, key: &str) -> Result<bool, StateError> {
        let now_ms = self.clock.now_ms();
        let work = |connection: &_| {
            rows::purge(connection, now_ms)?;
            Ok(rows::delete(connection, owner, key)?)
        };
        self.store.write(work).map_err(unavailable)
    }

    fn list(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateError> {
        let now_ms = self.clock.now_ms();
        let page = rows::Page { prefix, after, limit };
        let names = self.store.read(|connection| Ok(rows::list(connection, owner, &page, now_ms)?));
        names.map_err(unavailable)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unavailable(error: StoreError) -> StateError {
    StateError::Unavailable(error.to_string())
}
