//! The bundle of everything that is stored, and how the built-in database makes one.

use std::{fmt, path::Path, sync::Arc};

#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
use crate::{
    address::DatabaseAddress,
    approvals::ApprovalStore,
    audit::{AuditLog, AuditStore},
    connections::ConnectionStore,
    error::StoreError,
    idempotency::IdempotencyStore,
    kept_results::KeptResultStore,
    memories::MemoryStore,
    notices::NoticeStore,
    presence::SessionPresence,
    private_files,
    questions::QuestionStore,
    sessions::SessionStore,
    sqlite::SqliteStore,
    state::PersistentStateStore,
    tasks::TaskStore,
    timers::PersistentTimerStore,
    users::UserStore,
};

/// Everything that outlives a process, each part behind a trait, so that a host can be opened with
/// another database. Clones share the parts.
#[derive(Clone)]
pub struct HostStore {
    /// The sessions and their records.
    pub sessions: Arc<dyn SessionStore>,
    /// The long results of the calls of sessions.
    pub kept_results: Arc<dyn KeptResultStore>,
    /// The record of every decision and call.
    pub audit: Arc<dyn AuditStore>,
    /// The approvals that users gave for the rest of a session.
    pub approvals: Arc<dyn ApprovalStore>,
    /// The questions that wait for an answer.
    pub questions: Arc<dyn QuestionStore>,
    /// The calls that go on after their client was told so.
    pub tasks: Arc<dyn TaskStore>,
    /// The state of plugins.
    pub state: Arc<dyn PersistentStateStore>,
    /// The timers.
    pub timers: Arc<dyn PersistentTimerStore>,
    /// The messages that wait to be shown.
    pub notices: Arc<dyn NoticeStore>,
    /// The sessions that are open now.
    pub presence: Arc<dyn SessionPresence>,
    /// The memories.
    pub memories: Arc<dyn MemoryStore>,
    /// The accounts that users have connected.
    pub connections: Arc<dyn ConnectionStore>,
    /// The groups of users, and what they have used.
    pub users: Arc<dyn UserStore>,
    /// The keys of requests that clients may repeat.
    pub idempotency: Arc<dyn IdempotencyStore>,
}

impl HostStore {
    /// Opens a folder that keeps everything in SQLite, and creates it if it is missing. Does not
    /// open the database yet.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or the folder or a database in it is not private to this user.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Ok(Self::from_sqlite(SqliteStore::open(folder)?))
    }

    /// Checks whether [`open`](Self::open) can use the folder, or create it. Creates nothing.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or written to, or is not private to this user.
    pub fn check_folder(folder: &Path) -> Result<(), StoreError> {
        private_files::check_private_folder(folder)
    }

    /// Opens a database on a PostgreSQL server, with a folder for what stays on this machine: the
    /// key and the head of the audit. Creates the folder if it is missing. Does not connect yet.
    ///
    /// # Errors
    ///
    /// The address has a mistake, the folder cannot be created or is not private to this user, or
    /// this program was built without PostgreSQL.
    #[cfg(feature = "postgres")]
    pub fn connect(address: &DatabaseAddress, folder: &Path) -> Result<Self, StoreError> {
        Ok(Self::from_parts(PostgresStore::open(address, folder)?))
    }

    /// Refuses, because this program was built without PostgreSQL.
    ///
    /// # Errors
    ///
    /// Always.
    #[cfg(not(feature = "postgres"))]
    pub fn connect(address: &DatabaseAddress, _folder: &Path) -> Result<Self, StoreError> {
        Err(StoreError::NoPostgres { database: address.shown().to_owned() })
    }

    pub(crate) fn from_sqlite(sqlite: SqliteStore) -> Self {
        Self::from_parts(sqlite)
    }

    /// Uses one database for all parts.
    pub(crate) fn from_parts<S: AllStores + 'static>(store: S) -> Self {
        let shared = Arc::new(store);
        Self {
            sessions: shared.clone(),
            kept_results: shared.clone(),
            audit: shared.clone(),
            approvals: shared.clone(),
            questions: shared.clone(),
            tasks: shared.clone(),
            state: shared.clone(),
            timers: shared.clone(),
            notices: shared.clone(),
            presence: shared.clone(),
            memories: shared.clone(),
            connections: shared.clone(),
            users: shared.clone(),
            idempotency: shared,
        }
    }

    /// Starts an audit log for writing. A thread opens the database meanwhile; the methods of the
    /// log report whether that succeeded.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::start(self.audit.writer())
    }
}

/// A database that keeps everything.
pub(crate) trait AllStores:
    SessionStore
    + KeptResultStore
    + AuditStore
    + ApprovalStore
    + QuestionStore
    + TaskStore
    + PersistentStateStore
    + PersistentTimerStore
    + NoticeStore
    + SessionPresence
    + MemoryStore
    + ConnectionStore
    + UserStore
    + IdempotencyStore
{
}

impl AllStores for SqliteStore {}

#[cfg(feature = "postgres")]
impl AllStores for PostgresStore {}

impl fmt::Debug for HostStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostStore").finish_non_exhaustive()
    }
}
