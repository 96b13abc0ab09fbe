//! The kept results of sessions in SQLite. Their texts are bodies, as those of records.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, params};
use sallyport_contract::async_trait;

use super::{body, session};
use crate::{
    error::StoreError,
    kept_results::{
        KeptResultLookup, KeptResultStore, NewKeptResult, SESSION_BYTES_MAX, SESSION_RESULTS_MAX,
    },
    sessions::SessionRow,
    sql_integer::{from_sql_integer, to_sql_integer},
    sqlite::{SqliteStore, database, transaction_error::TransactionError},
};

/// Kept results that are removed in one commit. Each may be long.
const STEP_RESULTS_MAX: u32 = 4;

/// The table of kept results. `after_records` says which forks share a result.
pub(crate) const TABLE: &str = "
    CREATE TABLE kept_result (
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        after_records INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        body INTEGER NOT NULL REFERENCES body (key),
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX kept_result_body ON kept_result (body);
";

#[async_trait]
impl KeptResultStore for SqliteStore {
    async fn keep(
        &self,
        user: &str,
        session_id: &str,
        result: NewKeptResult,
    ) -> Result<u64, StoreError> {
        result.check_length()?;
        let (user, id) = (user.to_owned(), session_id.to_owned());
        self.write(move |connection| {
            keep_result(connection, session::find_session_row(connection, &user, &id)?, &result)
        })
        .await
    }

    async fn find(
        &self,
        user: &str,
        session_id: &str,
        number: u64,
    ) -> Result<KeptResultLookup, StoreError> {
        let (user, id) = (user.to_owned(), session_id.to_owned());
        let path = self.folder().join(database::FILE);
        self.read(move |connection| {
            let row = session::find_session_row(connection, &user, &id)?;
            find_result(connection, &row, number, path)
        })
        .await
    }
}

fn keep_result(
    connection: &Connection,
    session: SessionRow,
    result: &NewKeptResult,
) -> Result<u64, TransactionError> {
    let (key, number) = (session.key, session.last_kept.saturating_add(1));
    // No user searches for the text: the record of the call has its beginning.
    let body = body::find_or_insert_body(connection, &result.text, "")?;
    let sql = "INSERT INTO kept_result
        (session, number, after_records, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    let after_records = to_sql_integer(result.after_records);
    let bytes = to_sql_integer(result.text.len() as u64);
    connection.execute(sql, params![key, to_sql_integer(number), after_records, bytes, body])?;
    set_last_kept(connection, key, number)?;
    remove_displaced_results(connection, key)?;
    Ok(number)
}

fn set_last_kept(connection: &Connection, key: i64, number: u64) -> rusqlite::Result<usize> {
    let sql = "UPDATE session SET last_kept = ?2 WHERE key = ?1";
    connection.execute(sql, (key, to_sql_integer(number)))
}

/// Removes the oldest results until the rest is within both limits of a session.
fn remove_displaced_results(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM kept_result WHERE session = ?1 AND number <= (
        SELECT coalesce(max(number), 0) FROM (
            SELECT number, sum(bytes) OVER newer AS bytes, count(*) OVER newer AS results
            FROM kept_result WHERE session = ?1 WINDOW newer AS (ORDER BY number DESC)
        ) WHERE (bytes > ?2 OR results > ?3) AND results > 1
    ) RETURNING body";
    let limits = (key, to_sql_integer(SESSION_BYTES_MAX), to_sql_integer(SESSION_RESULTS_MAX));
    let mut statement = connection.prepare(sql)?;
    let bodies: Vec<i64> =
        statement.query_map(limits, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    body::remove_unused_bodies(connection, &bodies)
}

fn find_result(
    connection: &Connection,
    session: &SessionRow,
    number: u64,
    path: PathBuf,
) -> Result<KeptResultLookup, TransactionError> {
    let sql = "SELECT hash, text FROM kept_result JOIN body ON body.key = kept_result.body
        WHERE session = ?1 AND number = ?2";
    let row = connection
        .query_row(sql, (session.key, to_sql_integer(number)), body::read_verified_text)
        .optional()?;
    match row {
        Some(Some(text)) => Ok(KeptResultLookup::Found(text)),
        Some(None) => {
            let id = &session.session.id;
            let message = format!("kept result {number} of session {id} is not whole");
            Err(StoreError::Damaged { path, message }.into())
        }
        None if (1..=session.last_kept).contains(&number) => Ok(KeptResultLookup::Displaced),
        None => Ok(KeptResultLookup::Unknown),
    }
}

/// Gives a fork its part of the results of another session: those of its records.
pub(super) fn copy_results(
    connection: &Connection,
    from: &SessionRow,
    to: i64,
    records: u64,
) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO kept_result (session, number, after_records, bytes, body)
        SELECT ?2, number, after_records, bytes, body
        FROM kept_result WHERE session = ?1 AND after_records < ?3";
    connection.execute(sql, (from.key, to, to_sql_integer(records)))?;
    set_last_kept(connection, to, last_shared_number(connection, from, records)?)
}

/// Returns the highest number of a result that the first records of a session may refer to. If all
/// of theirs are displaced, it is the one before the first that is left, because the oldest ones
/// are displaced.
fn last_shared_number(
    connection: &Connection,
    session: &SessionRow,
    records: u64,
) -> rusqlite::Result<u64> {
    let sql = "SELECT coalesce(
            max(CASE WHEN after_records < ?2 THEN number END), min(number) - 1
        ) FROM kept_result WHERE session = ?1";
    let values = (session.key, to_sql_integer(records));
    let number: Option<i64> = connection.query_row(sql, values, |row| row.get(0))?;
    Ok(number.map_or(session.last_kept, from_sql_integer))
}

/// Removes the first results of a session, and returns the keys of their bodies.
pub(super) fn remove_first_results(
    connection: &Connection,
    key: i64,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "DELETE FROM kept_result WHERE session = ?1 AND number IN
        (SELECT number FROM kept_result WHERE session = ?1 ORDER BY number LIMIT ?2)
        RETURNING body";
    let mut statement = connection.prepare(sql)?;
    statement.query_map((key, STEP_RESULTS_MAX), |row| row.get(0))?.collect()
}
