//! Appending records: in one commit, and only after the records that the writer knows of.

use super::{body, session};
use crate::{
    postgres::{error::PgError, transaction::Tx, values::escape},
    sessions::NewRecord,
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
    let totals = row.session.totals_with(expected, records)?;
    for (seq, record) in (expected..).zip(records) {
        insert_record(tx, row.key, seq, record).await?;
    }
    session::set_totals(tx, row.key, &totals).await?;
    Ok(totals.records)
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
