//! Presence: which sessions are open now, and in which processes.
//!
//! A process enters a session, sends heartbeats while it runs, and leaves. A killed process counts
//! as having left. A process that hangs counts until its last heartbeat is too old.

use rusqlite::{Connection, Row, params};

use crate::{
    database::{from_sql_integer, to_sql_integer},
    error::StoreError,
    process::{self, ProcessIdentity, ProcessLiveness},
    store::HostStore,
};

/// How often a process should send a heartbeat, in milliseconds. A heartbeat is one small write.
pub const HEARTBEAT_MS: u64 = 10_000;

/// How long a session counts as open after a heartbeat: a busy machine may miss three of them.
const HEARTBEAT_AGE_MS_MAX: u64 = 4 * HEARTBEAT_MS;

/// The table of open sessions.
pub(crate) const TABLE: &str = "
    CREATE TABLE presence (
        session_id TEXT NOT NULL,
        process TEXT NOT NULL,
        user TEXT NOT NULL,
        beat_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, process)
    ) STRICT, WITHOUT ROWID;
";

/// The open sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionPresence<'s> {
    store: &'s HostStore,
}

/// A session that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// The session.
    pub session_id: String,
    /// The user who has it open.
    pub user: String,
}

impl<'s> SessionPresence<'s> {
    pub(crate) fn new(store: &'s HostStore) -> Self {
        Self { store }
    }

    /// Records that this process has a session open. Also removes the entries of processes that are
    /// gone.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn mark_open(self, user: &str, session_id: &str, now_ms: u64) -> Result<(), StoreError> {
        self.store.write_transaction(|connection| {
            remove_dead_processes(connection)?;
            Ok(insert_presence(
                connection,
                ProcessIdentity::current_process(),
                user,
                session_id,
                now_ms,
            )?)
        })
    }

    /// Sends a heartbeat for all sessions that this process has open.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn send_heartbeat(self, now_ms: u64) -> Result<(), StoreError> {
        let sql = "UPDATE presence SET beat_ms = ?2 WHERE process = ?1";
        let values = (ProcessIdentity::current_process().to_string(), to_sql_integer(now_ms));
        self.store.write_transaction(|connection| Ok(connection.execute(sql, values)?)).map(drop)
    }

    /// Records that this process has closed a session.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn mark_closed(self, session_id: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM presence WHERE session_id = ?1 AND process = ?2";
        let values = (session_id, ProcessIdentity::current_process().to_string());
        self.store.write_transaction(|connection| Ok(connection.execute(sql, values)?)).map(drop)
    }

    /// Returns whether any process has a session open.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn is_open(self, session_id: &str, now_ms: u64) -> Result<bool, StoreError> {
        Ok(self.list_open(now_ms)?.iter().any(|open| open.session_id == session_id))
    }

    /// Returns whether a user has any session open.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn has_open_session(self, user: &str, now_ms: u64) -> Result<bool, StoreError> {
        Ok(self.list_open(now_ms)?.iter().any(|open| open.user == user))
    }

    /// Lists the open sessions, each once per user who has it open.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list_open(self, now_ms: u64) -> Result<Vec<OpenSession>, StoreError> {
        self.store.read_transaction(|connection| Ok(list_open_sessions(connection, now_ms)?))
    }
}

/// Lists the open sessions, within the caller's transaction.
pub(crate) fn list_open_sessions(
    connection: &Connection,
    now_ms: u64,
) -> rusqlite::Result<Vec<OpenSession>> {
    let sql = "SELECT session_id, user, process, beat_ms FROM presence ORDER BY session_id, user";
    let read = |row: &Row<'_>| {
        let age_ms = now_ms.saturating_sub(from_sql_integer(row.get("beat_ms")?));
        let holder: String = row.get("process")?;
        let is_open = age_ms <= HEARTBEAT_AGE_MS_MAX
            && process::liveness_by_name(&holder) != ProcessLiveness::Ended;
        let open = OpenSession { session_id: row.get("session_id")?, user: row.get("user")? };
        Ok(is_open.then_some(open))
    };
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map((), read)?;
    let mut open: Vec<_> = rows.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    open.dedup();
    Ok(open)
}

pub(crate) fn insert_presence(
    connection: &Connection,
    process: &ProcessIdentity,
    user: &str,
    session_id: &str,
    now_ms: u64,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO presence (session_id, process, user, beat_ms)
        VALUES (?1, ?2, ?3, ?4)";
    connection
        .execute(sql, params![session_id, process.to_string(), user, to_sql_integer(now_ms)])?;
    Ok(())
}

fn remove_dead_processes(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT DISTINCT process FROM presence")?;
    let names: Vec<String> =
        statement.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    for name in
        names.iter().filter(|name| process::liveness_by_name(name) == ProcessLiveness::Ended)
    {
        connection.execute("DELETE FROM presence WHERE process = ?1", [name])?;
    }
    Ok(())
}
