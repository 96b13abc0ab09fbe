//! Forking: a session that starts with the records of another.

use rusqlite::{Connection, params};

use super::{kept_results, session};
use crate::{
    error::StoreError,
    sessions::{NewSession, SessionRow, StoredSession, StoredUsage},
    sql_integer::to_sql_integer,
    sqlite::transaction_error::TransactionError,
};

/// Creates a session with the first `records` of another. The two share the bodies and
/// the kept results.
///
/// # Errors
///
/// The session has fewer records, or the new id exists already.
pub(super) fn fork_session(
    connection: &Connection,
    parent: &SessionRow,
    records: u64,
    id: &str,
    at_ms: u64,
) -> Result<(), TransactionError> {
    let StoredSession { user, id: from, title, model, folder, records: found, .. } =
        parent.session.clone();
    if records > found {
        let id = from;
        return Err(StoreError::TooFewRecords { id, wanted: records, found }.into());
    }
    let id = id.to_owned();
    session::insert_session(
        connection,
        &NewSession { user, id, title, model, folder, created_ms: at_ms },
    )?;
    let key = connection.last_insert_rowid();
    copy_records(connection, parent.key, key, records)?;
    kept_results::copy_results(connection, parent, key, records)?;
    let used = sum_usage(connection, key)?;
    let sql = "UPDATE session SET parent_id = ?2, parent_records = ?3, records = ?3,
        turns = ?4, tokens = ?5, cost_micro_usd = ?6 WHERE key = ?1";
    let cost = used.cost_micro_usd.map(to_sql_integer);
    let (turns, tokens) = (to_sql_integer(used.turns), to_sql_integer(used.tokens));
    connection.execute(sql, params![key, from, to_sql_integer(records), turns, tokens, cost])?;
    Ok(())
}

fn copy_records(
    connection: &Connection,
    from: i64,
    to: i64,
    records: u64,
) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO record
        (session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd)
        SELECT ?2, seq, at_ms, kind, body, turns, tokens, cost_micro_usd
        FROM record WHERE session = ?1 AND seq < ?3";
    connection.execute(sql, (from, to, to_sql_integer(records)))
}

/// Adds up the usage of a session's records. Not a sum in SQL, because that fails on overflow where
/// [`StoredUsage::saturating_add`] saturates.
fn sum_usage(connection: &Connection, key: i64) -> rusqlite::Result<StoredUsage> {
    let sql = "SELECT turns, tokens, cost_micro_usd FROM record WHERE session = ?1";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query_map([key], session::read_usage)?;
    rows.try_fold(StoredUsage::default(), |sum, used| Ok(sum.saturating_add(used?)))
}
