//! The store: a private folder with a database that is opened on first use.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;

use crate::{
    approvals::ApprovalStore,
    audit::{AuditLog, AuditStore},
    clock::StoreClock,
    database,
    error::StoreError,
    memories::MemoryStore,
    notices::NoticeStore,
    presence::SessionPresence,
    private_files,
    sessions::SessionStore,
    state::PersistentStateStore,
    timers::PersistentTimerStore,
    transaction_error::TransactionError,
};

/// A store in one folder, whose contents outlive the process. Clones share one connection.
///
/// Every operation except opening an existing folder may wait for the disk, and up to some seconds
/// for another process.
#[derive(Debug, Clone)]
pub struct HostStore(Arc<SharedConnection>);

#[derive(Debug)]
struct SharedConnection {
    folder: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl HostStore {
    /// Opens a folder, and creates it if it is missing. Does not open the database yet.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or the folder or a database in it is not private to this user.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let folder = private_files::ensure_private_folder(folder)?;
        private_files::check_private_file(&folder.join(database::FILE))?;
        Ok(Self(Arc::new(SharedConnection { folder, connection: Mutex::new(None) })))
    }

    /// The folder, with symbolic links resolved.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The audit log, for reading.
    pub fn audit(&self) -> AuditStore<'_> {
        AuditStore::new(self)
    }

    /// Starts an audit log for writing. A thread opens the database meanwhile; the methods of the
    /// log report whether that succeeded.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::start(&self.0.folder)
    }

    /// The approvals that users gave for the rest of a session.
    pub fn approvals(&self) -> ApprovalStore<'_> {
        ApprovalStore::new(self)
    }

    /// The sessions and their records.
    pub fn sessions(&self) -> SessionStore<'_> {
        SessionStore::new(self)
    }

    /// The state of plugins.
    pub fn state(&self) -> PersistentStateStore {
        PersistentStateStore::new(self.clone(), StoreClock::from_system())
    }

    /// The timers.
    pub fn timers(&self) -> PersistentTimerStore {
        PersistentTimerStore::new(self.clone(), StoreClock::from_system())
    }

    /// The messages that wait to be shown.
    pub fn notices(&self) -> NoticeStore<'_> {
        NoticeStore::new(self)
    }

    /// The sessions that are open now.
    pub fn presence(&self) -> SessionPresence<'_> {
        SessionPresence::new(self)
    }

    /// The memories.
    pub fn memories(&self) -> MemoryStore<'_> {
        MemoryStore::new(self)
    }

    /// Runs `work` with the database, and opens it if necessary. A failure to open it is not
    /// remembered: the next use tries again.
    pub(crate) fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut slot = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match slot.take() {
            Some(connection) => connection,
            None => database::open_database(&self.0.folder)?,
        };
        work(slot.insert(connection))
    }

    /// Runs `work` in one transaction, which is committed only if `work` succeeds.
    pub(crate) fn write_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.with_connection(|connection| {
            let failed = database::map_database_error(self.folder());
            let transaction = database::begin_transaction(connection).map_err(failed)?;
            let value = work(&transaction).map_err(|refusal| refusal.into_store_error(failed))?;
            transaction.commit().map_err(failed)?;
            Ok(value)
        })
    }

    /// Runs `work` in a read transaction, so that all of its queries see the same state.
    pub(crate) fn read_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.with_connection(|connection| {
            let failed = database::map_database_error(self.folder());
            let transaction = connection.unchecked_transaction().map_err(failed)?;
            work(&transaction).map_err(|refusal| refusal.into_store_error(failed))
        })
    }
}
