//! Forking: a session that starts with the records of another.

use super::{kept_results, session};
use crate::{
    error::StoreError,
    postgres::{error::PgError, transaction::Tx, values::escape},
    sessions::{NewSession, SessionRow, SessionTotals, StoredSession, StoredUsage},
    sql_integer::to_sql_integer,
};

/// Creates a session with the first `records` of another. The two share the bodies and the kept
/// results.
///
/// # Errors
///
/// The session has fewer records, or the new id exists already.
pub(super) async fn fork_session(
    tx: &Tx<'_>,
    parent: &SessionRow,
    records: u64,
    id: &str,
    at_ms: u64,
) -> Result<(), PgError> {
    let StoredSession { user, id: from, title, model, folder, records: found, .. } =
        parent.session.clone();
    if records > found {
        return Err(StoreError::TooFewRecords { id: from, wanted: records, found }.into());
    }
    let new = NewSession { user, id: id.to_owned(), title, model, folder, created_ms: at_ms };
    let key = session::insert_session(tx, &new).await?;
    let sql = "INSERT INTO record
            (session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd)
        SELECT $2, seq, at_ms, kind, body, turns, tokens, cost_micro_usd
        FROM record WHERE session = $1 AND seq < $3";
    let sql_records = to_sql_integer(records);
    tx.execute(sql, &[&parent.key, &key, &sql_records]).await?;
    kept_results::copy_results(tx, parent, key, records).await?;
    let sql = "UPDATE session SET parent_id = $2, parent_records = $3 WHERE key = $1";
    tx.execute(sql, &[&key, &escape(&from), &sql_records]).await?;
    let totals = SessionTotals { records, updated_ms: 0, used: sum_usage(tx, key).await? };
    session::set_totals(tx, key, &totals).await
}

/// Adds up the usage of a session's records. Not a sum in SQL, because that fails on overflow where
/// [`StoredUsage::saturating_add`] saturates.
async fn sum_usage(tx: &Tx<'_>, key: i64) -> Result<StoredUsage, PgError> {
    let sql = "SELECT turns, tokens, cost_micro_usd FROM record WHERE session = $1";
    let rows = tx.rows(sql, &[&key]).await?;
    rows.iter().try_fold(StoredUsage::default(), |sum, row| {
        Ok(sum.saturating_add(session::read_usage(row)?))
    })
}
