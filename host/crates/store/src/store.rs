//! The store: a private folder with a database that is opened on first use.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;

use crate::{
    approvals::Approvals,
    audit::{Audit, AuditLog},
    clock::Clock,
    database,
    error::StoreError,
    memories::Memories,
    notices::KeptNotices,
    presence::Presence,
    private,
    refusal::Refusal,
    sessions::Sessions,
    state::State,
    timers::KeptTimers,
};

/// A store in one folder, whose contents outlive the process. Clones share one connection.
///
/// Every operation except opening an existing folder may wait for the disk, and up to some seconds
/// for another process.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl Store {
    /// Opens a folder, and creates it if it is missing. Does not open the database yet.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or the folder or a database in it is not private to this user.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let folder = private::folder(folder)?;
        private::file(&folder.join(database::FILE))?;
        Ok(Self(Arc::new(Shared { folder, connection: Mutex::new(None) })))
    }

    /// The folder, with symbolic links resolved.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The audit log, for reading.
    pub fn audit(&self) -> Audit<'_> {
        Audit::new(self)
    }

    /// Starts an audit log for writing. A thread opens the database meanwhile; the methods of the
    /// log report whether that succeeded.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::start(&self.0.folder)
    }

    /// The approvals that users gave for the rest of a session.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals::new(self)
    }

    /// The sessions and their records.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions::new(self)
    }

    /// The state of plugins.
    pub fn state(&self) -> State {
        State::new(self.clone(), Clock::of_wall())
    }

    /// The timers.
    pub fn timers(&self) -> KeptTimers {
        KeptTimers::new(self.clone(), Clock::of_wall())
    }

    /// The messages that wait to be shown.
    pub fn notices(&self) -> KeptNotices<'_> {
        KeptNotices::new(self)
    }

    /// The sessions that are open now.
    pub fn presence(&self) -> Presence<'_> {
        Presence::new(self)
    }

    /// The memories.
    pub fn memories(&self) -> Memories<'_> {
        Memories::new(self)
    }

    /// Runs `work` with the database, and opens it if necessary. A failure to open it is not
    /// remembered: the next use tries again.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut slot = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match slot.take() {
            Some(connection) => connection,
            None => database::open(&self.0.folder)?,
        };
        work(slot.insert(connection))
    }

    /// Runs `work` in one transaction, which is committed only if `work` succeeds.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Refusal>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            let failed = database::failed(self.folder());
            let transaction = database::begin(connection).map_err(failed)?;
            let value = work(&transaction).map_err(|refusal| refusal.into_error(failed))?;
            transaction.commit().map_err(failed)?;
            Ok(value)
        })
    }

    /// Runs `work` in a read transaction, so that all of its queries see the same state.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Refusal>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            let failed = database::failed(self.folder());
            let transaction = connection.unchecked_transaction().map_err(failed)?;
            work(&transaction).map_err(|refusal| refusal.into_error(failed))
        })
    }
}
