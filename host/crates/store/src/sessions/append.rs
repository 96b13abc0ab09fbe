//! Appending records: in one commit, and only after the records that the writer knows of.

use rusqlite::{Connection, Statement, params};

use super::{Refusal, body, record::NewRecord, session};
use crate::{database::signed, error::StoreError};

/// Most records of one session. A turn makes some tens, so this is enough for years. A process that
/// continues a session keeps all of them in memory.
const RECORDS_MAX: u64 = 100_000;

/// Appends records to a session that has `expected` of them, and returns the new number of records.
///
/// # Errors
///
/// No session has this id, it has another number of records, or it would have too many.
pub(super) fn append(
    connection: &Connection,
    id: &str,
    expected: u64,
    records: &[NewRecord<'_>],
) -> Result<u64, Refusal> {
    let row = session::row(connection, id)?;
    let found = row.session.records;
    if found != expected {
        return Err(StoreError::WentOn { id: id.to_owned(), expected, found }.into());
    }
    let total = found.saturating_add(records.len() as u64);
    if total > RECORDS_MAX {
        return Err(StoreError::SessionFull { id: id.to_owned(), records_max: RECORDS_MAX }.into());
    }
    insert(connection, row.key, found, records)?;
    let used = records.iter().fold(row.session.used, |used, record| used.plus(record.used));
    let updated_ms = records.iter().map(|record| record.at_ms).max().unwrap_or(0);
    let sql = "UPDATE session SET records = ?2, updated_ms = max(updated_ms, ?3),
        turns = ?4, tokens = ?5, cost_micro_usd = ?6 WHERE key = ?1";
    let cost = used.cost_micro_usd.map(signed);
    let (turns, tokens) = (signed(used.turns), signed(used.tokens));
    connection
        .execute(sql, params![row.key, signed(total), signed(updated_ms), turns, tokens, cost])?;
    Ok(total)
}

fn insert(
    connection: &Connection,
    key: i64,
    first_seq: u64,
    records: &[NewRecord<'_>],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "INSERT INTO record (session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (seq, record) in (first_seq..).zip(records) {
        let body = body::keep(connection, record.body, record.search_text)?;
        insert_one(&mut statement, (key, seq, body), record)?;
    }
    Ok(())
}

fn insert_one(
    statement: &mut Statement<'_>,
    (session, seq, body): (i64, u64, i64),
    record: &NewRecord<'_>,
) -> rusqlite::Result<usize> {
    let used = record.used;
    statement.execute(params![
        session,
        signed(seq),
        signed(record.at_ms),
        record.kind,
        body,
        signed(used.turns),
        signed(used.tokens),
        used.cost_micro_usd.map(signed),
    ])
}
