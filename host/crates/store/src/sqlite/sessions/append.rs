//! Appending records: in one commit, and only after the records that the writer knows of.

use rusqlite::{Connection, params};

use super::{body, session};
use crate::{
    sessions::{NewRecord, SessionTotals},
    sql_integer::to_sql_integer,
    sqlite::transaction_error::TransactionError,
};

/// Appends records to a session that has `expected` of them, and returns the new number of records.
///
/// # Errors
///
/// No session of the user has this id, it has another number of records, or it would have too many.
pub(super) fn append_records(
    connection: &Connection,
    user: &str,
    id: &str,
    expected: u64,
    records: &[NewRecord],
) -> Result<u64, TransactionError> {
    let row = session::find_session_row(connection, user, id)?;
    let SessionTotals { records: total, updated_ms, used } =
        row.session.totals_with(expected, records)?;
    insert_records(connection, row.key, expected, records)?;
    let sql = "UPDATE session SET records = ?2, updated_ms = max(updated_ms, ?3),
        turns = ?4, tokens = ?5, cost_micro_usd = ?6 WHERE key = ?1";
    let cost = used.cost_micro_usd.map(to_sql_integer);
    let (turns, tokens) = (to_sql_integer(used.turns), to_sql_integer(used.tokens));
    connection.execute(
        sql,
        params![row.key, to_sql_integer(total), to_sql_integer(updated_ms), turns, tokens, cost],
    )?;
    Ok(total)
}

fn insert_records(
    connection: &Connection,
    key: i64,
    first_seq: u64,
    records: &[NewRecord],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "INSERT INTO record (session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (seq, record) in (first_seq..).zip(records) {
        let body = body::find_or_insert_body(connection, &record.body, &record.search_text)?;
        statement.execute(params![
            key,
            to_sql_integer(seq),
            to_sql_integer(record.at_ms),
            record.kind,
            body,
            to_sql_integer(record.used.turns),
            to_sql_integer(record.used.tokens),
            record.used.cost_micro_usd.map(to_sql_integer),
        ])?;
    }
    Ok(())
}
