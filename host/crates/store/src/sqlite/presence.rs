//! The open sessions in SQLite.

use rusqlite::{Connection, Row, params};
use sallyport_contract::async_trait;

use super::SqliteStore;
use crate::{
    error::StoreError,
    presence::{HEARTBEAT_AGE_MS_MAX, OpenSession, SessionClaim, SessionPresence},
    process::{self, ProcessIdentity, ProcessLiveness},
    sql_integer::{from_sql_integer, to_sql_integer},
};

/// The table of open sessions.
pub(super) const TABLE: &str = "
    CREATE TABLE presence (
        session_id TEXT NOT NULL,
        process TEXT NOT NULL,
        user TEXT NOT NULL,
        beat_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, process)
    ) STRICT, WITHOUT ROWID;
";

#[async_trait]
impl SessionPresence for SqliteStore {
    async fn mark_open(&self, user: &str, session_id: &str, now_ms: u64) -> Result<(), StoreError> {
        let (user, session_id) = (user.to_owned(), session_id.to_owned());
        self.write(move |connection| {
            remove_dead_processes(connection)?;
            insert_presence(connection, &user, &session_id, now_ms)
        })
        .await
    }

    async fn claim_session(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError> {
        let (user, session_id) = (user.to_owned(), session_id.to_owned());
        self.write(move |connection| claim_in(connection, &user, &session_id, now_ms)).await
    }

    async fn send_heartbeat(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError> {
        let (user, session_id) = (user.to_owned(), session_id.to_owned());
        self.write(move |connection| {
            let sql = "UPDATE presence SET beat_ms = ?3 WHERE session_id = ?1 AND process = ?2";
            let process = ProcessIdentity::current_process().to_string();
            let values = params![session_id, process, to_sql_integer(now_ms)];
            match connection.execute(sql, values)? {
                0 => claim_in(connection, &user, &session_id, now_ms),
                _ => Ok(SessionClaim::Claimed),
            }
        })
        .await
    }

    async fn mark_closed(&self, session_id: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM presence WHERE session_id = ?1 AND process = ?2";
        let values = (session_id.to_owned(), ProcessIdentity::current_process().to_string());
        self.write(move |connection| connection.execute(sql, values)).await.map(drop)
    }

    async fn list_open(&self, now_ms: u64) -> Result<Vec<OpenSession>, StoreError> {
        self.read(move |connection| list_open_sessions(connection, now_ms)).await
    }
}

/// Adds this process, unless another one that runs has the session open.
fn claim_in(
    connection: &Connection,
    user: &str,
    session_id: &str,
    now_ms: u64,
) -> rusqlite::Result<SessionClaim> {
    remove_dead_processes(connection)?;
    if is_open_elsewhere(connection, session_id, now_ms)? {
        return Ok(SessionClaim::OpenElsewhere);
    }
    insert_presence(connection, user, session_id, now_ms).map(|()| SessionClaim::Claimed)
}

fn insert_presence(
    connection: &Connection,
    user: &str,
    session_id: &str,
    now_ms: u64,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO presence (session_id, process, user, beat_ms)
        VALUES (?1, ?2, ?3, ?4)";
    let process = ProcessIdentity::current_process().to_string();
    let values = params![session_id, process, user, to_sql_integer(now_ms)];
    connection.execute(sql, values).map(drop)
}

/// Whether another process has a session open, after [`remove_dead_processes`].
fn is_open_elsewhere(
    connection: &Connection,
    session_id: &str,
    now_ms: u64,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM presence
        WHERE session_id = ?1 AND process <> ?2 AND beat_ms >= ?3)";
    let process = ProcessIdentity::current_process().to_string();
    let oldest_ms = to_sql_integer(now_ms.saturating_sub(HEARTBEAT_AGE_MS_MAX));
    connection.query_row(sql, params![session_id, process, oldest_ms], |row| row.get(0))
}

/// Lists the open sessions, within the caller's transaction.
pub(super) fn list_open_sessions(
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
