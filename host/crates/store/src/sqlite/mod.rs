//! The store in SQLite, the one that is compiled in. No other module uses SQL.
//!
//! All nouns share one connection, which is opened at its first use. Every operation may wait for
//! the disk, and up to some seconds for another process, so [`SqliteStore::run`] takes it to a
//! thread that may wait. The audit's writer has a connection and a thread of its own.

mod approvals;
pub(crate) mod audit;
mod connections;
mod idempotency;
mod memories;
mod notices;
mod presence;
mod questions;
mod sessions;
mod state;
mod tasks;
mod timers;
mod users;

pub(crate) mod database;
pub(crate) mod migration;
pub(crate) mod transaction_error;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;

use self::transaction_error::TransactionError;
use crate::{clock, error::StoreError, private_files};

/// A database in one folder, whose contents outlive the process. Clones share one connection.
#[derive(Clone)]
pub(crate) struct SqliteStore {
    shared: Arc<SharedConnection>,
    /// Reads the time in milliseconds since 1970, which may step back.
    pub(crate) clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

struct SharedConnection {
    folder: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl SqliteStore {
    /// Opens a folder, and creates it if it is missing. Does not open the database yet.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or the folder or a database in it is not private to this user.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let folder = private_files::ensure_private_folder(folder)?;
        private_files::check_private_file(&folder.join(database::FILE))?;
        let shared = Arc::new(SharedConnection { folder, connection: Mutex::new(None) });
        Ok(Self { shared, clock: Arc::new(clock::current_time_ms) })
    }

    /// The folder, with symbolic links resolved.
    pub(crate) fn folder(&self) -> &Path {
        &self.shared.folder
    }

    fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// Runs blocking work on a thread that may wait. Work that has begun is done to its end, even
    /// if the caller stops waiting.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        // The work panicked, or the program is ending.
        done.unwrap_or_else(|error| {
            let path = self.folder().join(database::FILE);
            Err(StoreError::Database { path, message: error.to_string() })
        })
    }

    /// Runs `work` in one transaction, which is committed only if `work` succeeds.
    pub(crate) async fn write<T: Send + 'static, E: Into<TransactionError>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |store| store.write_transaction(|open| work(open).map_err(E::into))).await
    }

    /// Runs `work` in a read transaction, so that all of its queries see the same state.
    pub(crate) async fn read<T: Send + 'static, E: Into<TransactionError>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |store| store.read_transaction(|open| work(open).map_err(E::into))).await
    }

    /// [`write`](Self::write), on the current thread.
    pub(crate) fn write_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.with_connection(|connection| {
            let transaction = database::begin_transaction(connection)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
    }

    /// [`read`](Self::read), on the current thread.
    pub(crate) fn read_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.with_connection(|connection| work(&*connection.unchecked_transaction()?))
    }

    /// Runs `work` with the database on the current thread, and opens it if necessary. A failure to
    /// open it is not remembered: the next use tries again.
    pub(crate) fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        let mut slot = self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match slot.take() {
            Some(connection) => connection,
            None => database::open_database(self.folder())?,
        };
        work(slot.insert(connection)).map_err(|error| error.into_store_error(self.folder()))
    }
}
