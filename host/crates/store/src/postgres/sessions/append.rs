//! Appending records: in one commit, and only after the records that the writer knows of.

use super::{body, session};
use crate::{
    error::StoreError,
    postgres::{error::PgError, transaction::Tx, values::escape},
    sessions::{NewRecord, RECORDS_MAX},
    sql_integer::to_sql_integer,
};

/// Appends records to a session that has `expected` of them, and returns the new number of records.
///
/// # Errors
///
/// No session of the user has this id, it has another number of records, or it would have too many.
pub(super) async fn append_records(
    tx: &Tx<'_>,
    user: &str,
    id: &str,
    expected: u64,
    records: &[NewRecord],
) -> Result<u64, PgError> {
    let row = session::lock_session(tx, user, id).await?;
    let found = row.session.records;
    if found != expected {
        return Err(StoreError::ConcurrentAppend { id: id.to_owned(), expected, found }.into());
    }
    let total = found.saturating_add(records.len() as u64);
    if total > RECORDS_MAX {
        return Err(StoreError::SessionFull { id: id.to_owned(), records_max: RECORDS_MAX }.into());
    }
    for (seq, record) in (found..).zip(records) {
        insert_record(tx, row.key, seq, record).await?;
    }
    let used =
        records.iter().fold(row.session.used, |used, record| used.saturating_add(record.used));
    let updated_ms = records.iter().map(|record| record.at_ms).max().unwrap_or(0);
    session::set_totals(tx, row.key, total, updated_ms, used).await?;
    Ok(total)
}

async fn insert_record(tx: &Tx<'_>, key: i64, seq: u64, record: &NewRecord) -> Result<(), PgError> {
    let body = body::find_or_insert_body(tx, &record.body, &record.search_text).await?;
    let sql = "INSERT INTO record (session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let (seq, at_ms) = (to_sql_integer(seq), to_sql_integer(record.at_ms));
    let (turns, tokens) = (to_sql_integer(record.used.turns), to_sql_integer(record.used.tokens));
    let (kind, cost) = (escape(&record.kind), record.used.cost_micro_usd.map(to_sql_integer));
    tx.execute(sql, &[&key, &seq, &at_ms, &kind, &body, &turns, &tokens, &cost]).await.map(drop)
}
