//! Reading a session, a page at a time.

use futures::TryStreamExt;
use tokio_postgres::Row;

use super::{body, session};
use crate::{
    postgres::{
        error::PgError,
        transaction::Tx,
        values::{Columns, escape},
    },
    sessions::{PAGE_BYTES, PAGE_RECORDS_MAX, StoredRecord, StoredSession, missing_session_error},
    sql_integer::to_sql_integer,
};

/// Reads the records of a session from a number on. A damaged record ends the page before it, and
/// is the error of the next page.
pub(super) async fn read_page(
    tx: &Tx<'_>,
    session: &StoredSession,
    from: u64,
) -> Result<Vec<StoredRecord>, PgError> {
    if from >= session.records {
        return Ok(Vec::new());
    }
    let page = read_records(tx, session, from).await?;
    if page.is_empty() {
        // The session was removed, perhaps with another one in its place, or a record is damaged.
        let present = session::find_session(tx, &session.user, &session.id).await?.session;
        if present.created_ms != session.created_ms || present.records < session.records {
            return Err(missing_session_error(&session.id).into());
        }
        let id = &session.id;
        return Err(PgError::Foreign(format!("record {from} of session {id} is not whole")));
    }
    Ok(page)
}

/// Reads records up to the first damaged one, or until the page is full.
async fn read_records(
    tx: &Tx<'_>,
    session: &StoredSession,
    from: u64,
) -> Result<Vec<StoredRecord>, PgError> {
    let sql = "SELECT seq, record.at_ms AS at_ms, kind, record.turns AS turns,
            record.tokens AS tokens, record.cost_micro_usd AS cost_micro_usd, hash, text
        FROM session JOIN record ON record.session = session.key
        JOIN body ON body.key = record.body
        WHERE user_id = $1 AND session.id = $2 AND created_ms = $3 AND seq >= $4 AND seq < $5
        ORDER BY seq LIMIT $6";
    let (user, id) = (escape(&session.user), escape(&session.id));
    let (created_ms, end) = (to_sql_integer(session.created_ms), to_sql_integer(session.records));
    let (from_sql, most) = (to_sql_integer(from), i64::from(PAGE_RECORDS_MAX));
    let rows = tx.stream(sql, &[&user, &id, &created_ms, &from_sql, &end, &most]).await?;
    let mut rows = std::pin::pin!(rows);
    let (mut page, mut bytes, mut is_whole) = (Vec::new(), 0, true);
    // The rest of the rows comes anyway, and is dropped.
    while let Some(row) = rows.try_next().await? {
        if bytes >= PAGE_BYTES || !is_whole {
            continue;
        }
        let expected = from + page.len() as u64;
        match read_record(&row)?.filter(|record| record.seq == expected) {
            Some(record) => {
                bytes += record.body.len();
                page.push(record);
            }
            None => is_whole = false,
        }
    }
    Ok(page)
}

/// Reads a record; `None` if its body does not match its hash.
fn read_record(row: &Row) -> Result<Option<StoredRecord>, PgError> {
    let Some(body) = body::read_verified_text(row)? else { return Ok(None) };
    Ok(Some(StoredRecord {
        seq: row.number("seq")?,
        kind: row.text("kind")?,
        body,
        at_ms: row.number("at_ms")?,
        used: session::read_usage(row)?,
    }))
}
