//! The store: a private folder, and the database in it from the moment somebody needs it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;

use crate::{
    approvals::Approvals,
    audit::{Audit, AuditLog},
    database,
    error::StoreError,
    private,
    sessions::Sessions,
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
}
