//! Reading a session, a page at a time.

use std::path::PathBuf;

use rusqlite::{Connection, Row};

use super::{body, session};
use crate::{
    error::StoreError,
    sessions::{PAGE_BYTES, PAGE_RECORDS_MAX, StoredRecord, StoredSession, missing_session_error},
    sql_integer::{from_sql_integer, to_sql_integer},
    sqlite::transaction_error::TransactionError,
};

/// Reads the records of a session from a number on. A damaged record ends the page before it, and
/// is the error of the next page. `path` is the database's, for that error.
pub(super) fn read_page(
    connection: &Connection,
    session: &StoredSession,
    from: u64,
    path: PathBuf,
) -> Result<Vec<StoredRecord>, TransactionError> {
    if from >= session.records {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(
        "SELECT seq, record.at_ms, kind, record.turns, record.tokens, record.cost_micro_usd, hash,
             text
         FROM session JOIN record ON record.session = session.key
         JOIN body ON body.key = record.body
         WHERE user = ?1 AND session.id = ?2 AND created_ms = ?3 AND seq >= ?4 AND seq < ?5
         ORDER BY seq LIMIT ?6",
    )?;
    let (created_ms, end) = (to_sql_integer(session.created_ms), to_sql_integer(session.records));
    let from_sql = to_sql_integer(from);
    let range = (&session.user, &session.id, created_ms, from_sql, end, PAGE_RECORDS_MAX);
    let mut rows = statement.query(range)?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let expected = from + page.len() as u64;
        let record = read_record(row)?.filter(|record| record.seq == expected);
        let Some(record) = record else { break };
        bytes += record.body.len();
        page.push(record);
    }
    if page.is_empty() {
        // The session was removed, perhaps with another one in its place, or the file is damaged.
        let present = session::find_session_row(connection, &session.user, &session.id)?.session;
        if present.created_ms != session.created_ms || present.records < session.records {
            return Err(missing_session_error(&session.id).into());
        }
        let message = format!("record {from} of session {} is not whole", session.id);
        return Err(StoreError::Damaged { path, message }.into());
    }
    Ok(page)
}

/// Reads a record; `None` if its body does not match its hash.
fn read_record(row: &Row<'_>) -> rusqlite::Result<Option<StoredRecord>> {
    let Some(body) = body::read_verified_text(row)? else { return Ok(None) };
    Ok(Some(StoredRecord {
        seq: from_sql_integer(row.get("seq")?),
        kind: row.get("kind")?,
        body,
        at_ms: from_sql_integer(row.get("at_ms")?),
        used: session::read_usage(row)?,
    }))
}
