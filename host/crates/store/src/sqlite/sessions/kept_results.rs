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
    sqlite::{
        SqliteStore,
        database::{self, from_sql_integer, to_sql_integer},
        transaction_error::TransactionError,
    },
};

/// Kept results that are removed in one commit. Each may be long.
const STEP_RESULTS_MAX: u32 = 4;

/// The table of kept results. `after_records` says which forks share a result.
pub(crate) const TABLE: &str = "
    CREATE TABLE kept_result (
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        after_records INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        body INTEGER NOT NULL REFERENCES body (key),
        PRIMARY KEY (session, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX kept_result_body ON kept_result (body);
";

#[async_trait]
impl KeptResultStore for SqliteStore {
    async fn keep(&self, session_id: &str, result: NewKeptResult) -> Result<u64, StoreError> {
        result.check_lengths()?;
        let id = session_id.to_owned();
        self.write(move |connection| keep_result(connection, &id, &result)).await
    }

    async fn find(&self, session_id: &str, number: u64) -> Result<KeptResultLookup, StoreError> {
        let (id, path) = (session_id.to_owned(), self.folder().join(database::FILE));
        self.read(move |connection| find_result(connection, &id, number, path)).await
    }
}

fn keep_result(
    connection: &Connection,
    id: &str,
    result: &NewKeptResult,
) -> Result<u64, TransactionError> {
    let key = session::find_session_row(connection, id)?.key;
    let number = newest_number(connection, key)? + 1;
    // No user searches for the text: the record of the call has its beginning.
    let body = body::find_or_insert_body(connection, &result.text, "")?;
    let sql = "INSERT INTO kept_result
        (session, number, after_records, at_ms, call_id, tool, bytes, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.execute(
        sql,
        params![
            key,
            number,
            to_sql_integer(result.after_records),
            to_sql_integer(result.at_ms),
            result.call_id,
            result.tool,
            to_sql_integer(result.text.len() as u64),
            body,
        ],
    )?;
    remove_displaced_results(connection, key)?;
    Ok(from_sql_integer(number))
}

/// The number of the newest result, which is never displaced; 0 without any.
fn newest_number(connection: &Connection, key: i64) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(number), 0) FROM kept_result WHERE session = ?1";
    connection.query_row(sql, [key], |row| row.get(0))
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
    id: &str,
    number: u64,
    path: PathBuf,
) -> Result<KeptResultLookup, TransactionError> {
    let key = session::find_session_row(connection, id)?.key;
    let sql = "SELECT hash, text FROM kept_result JOIN body ON body.key = kept_result.body
        WHERE session = ?1 AND number = ?2";
    let row = connection
        .query_row(sql, (key, to_sql_integer(number)), body::read_verified_text)
        .optional()?;
    match row {
        Some(Some(text)) => Ok(KeptResultLookup::Found(text)),
        Some(None) => {
            let message = format!("kept result {number} of session {id} is not whole");
            Err(StoreError::Damaged { path, message }.into())
        }
        None if number > 0 && number <= from_sql_integer(newest_number(connection, key)?) => {
            Ok(KeptResultLookup::Displaced)
        }
        None => Ok(KeptResultLookup::Unknown),
    }
}

/// Gives a fork its part of the results of another session: those of its records.
pub(super) fn copy_results(
    connection: &Connection,
    from: i64,
    to: i64,
    records: u64,
) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO kept_result
        (session, number, after_records, at_ms, call_id, tool, bytes, body)
        SELECT ?2, number, after_records, at_ms, call_id, tool, bytes, body
        FROM kept_result WHERE session = ?1 AND after_records < ?3";
    connection.execute(sql, (from, to, to_sql_integer(records)))
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
