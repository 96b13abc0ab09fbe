//! Forking: a session that starts with the records of another.

use rusqlite::{Connection, params};

use super::{
    Refusal,
    session::{self, NewSession, Session, Used},
};
use crate::{database::signed, error::StoreError};

/// Creates a session with the first `records` of another. The two share the bodies.
///
/// # Errors
///
/// No session has the id `from`, it has fewer records, or the new id exists already.
pub(super) fn fork(
    connection: &Connection,
    from: &str,
    records: u64,
    id: &str,
    at_ms: u64,
) -> Result<(), Refusal> {
    let parent = session::row(connection, from)?;
    let Session { title, model, folder, records: found, .. } = &parent.session;
    if records > *found {
        let (id, found) = (from.to_owned(), *found);
        return Err(StoreError::TooFewRecords { id, wanted: records, found }.into());
    }
    let folder = folder.as_deref();
    session::insert(connection, &NewSession { id, title, model, folder, created_ms: at_ms })?;
    let key = connection.last_insert_rowid();
    copy(connection, parent.key, key, records)?;
    let used = used(connection, key)?;
    let sql = "UPDATE session SET parent_id = ?2, parent_records = ?3, records = ?3,
        turns = ?4, tokens = ?5, cost_micro_usd = ?6 WHERE key = ?1";
    let cost = used.cost_micro_usd.map(signed);
    let (turns, tokens) = (signed(used.turns), signed(used.tokens));
    connection.execute(sql, params![key, from, signed(records), turns, tokens, cost])?;
    Ok(())
}

fn copy(connection: &Connection, from: i64, to: i64, records: u64) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO record
        (session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd)
        SELECT ?2, seq, at_ms, kind, body, turns, tokens, cost_micro_usd
        FROM record WHERE session = ?1 AND seq < ?3";
    connection.execute(sql, (from, to, signed(records)))
}

/// Adds up the usage of a session's records. Not a sum in SQL, because that fails on overflow where
/// [`Used::plus`] saturates.
fn used(connection: &Connection, key: i64) -> rusqlite::Result<Used> {
    let sql = "SELECT turns, tokens, cost_micro_usd FROM record WHERE session = ?1";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query_map([key], Used::read)?;
    rows.try_fold(Used::default(), |sum, used| Ok(sum.plus(used?)))
}
