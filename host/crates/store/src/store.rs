//! The store: a private folder, and the database in it from the moment somebody needs it.

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

/// What outlives a process, in one folder. Clones share one connection.
///
/// Everything here but opening may wait for the disk, and for another process up to some seconds.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl Store {
    /// Uses a folder, which is made if it is missing. The database is not opened yet.
    ///
    /// # Errors
    ///
    /// The folder, or a database in it, is not private to this user or cannot be made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let folder = private::folder(folder)?;
        private::file(&folder.join(database::FILE))?;
        Ok(Self(Arc::new(Shared { folder, connection: Mutex::new(None) })))
    }

    /// The folder, with its links followed.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// What was recorded.
    pub fn audit(&self) -> Audit<'_> {
        Audit::new(self)
    }

    /// Starts to record. A thread opens the database meanwhile; whether it could is told by the
    /// log's own methods.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::start(&self.0.folder)
    }

    /// What a person allowed for the rest of a session.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals::new(self)
    }

    /// What was said and done.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions::new(self)
    }

    /// What plugins remember.
    pub fn state(&self) -> State {
        State::new(self.clone(), Clock::of_wall())
    }

    /// What is to happen at its time.
    pub fn timers(&self) -> KeptTimers {
        KeptTimers::new(self.clone(), Clock::of_wall())
    }

    /// Messages that wait for somebody to read them.
    pub fn notices(&self) -> KeptNotices<'_> {
        KeptNotices::new(self)
    }

    /// Which sessions are open at present.
    pub fn presence(&self) -> Presence<'_> {
        Presence::new(self)
    }

    /// What is recalled by its meaning.
    pub fn memories(&self) -> Memories<'_> {
        Memories::new(self)
    }

    /// Does something with the database, which is opened if it is not yet. A failure to open is
    /// not kept: the next use tries again.
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

    /// Does something in one commit, or not at all.
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

    /// Reads something, all of it as it was at one moment.
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
