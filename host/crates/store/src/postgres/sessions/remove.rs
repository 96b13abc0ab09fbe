//! Removing sessions: each disappears immediately, and its records follow in short commits.

use super::{body, kept_results};
use crate::postgres::{approvals, error::PgError, notices, transaction::Tx, values::Columns};

/// Records that are removed in one commit.
const STEP_RECORDS_MAX: i64 = 500;

/// Removes a session from the list, with its approvals and the messages that only it would show.
/// Its records become leftovers. The caller has locked it.
pub(super) async fn detach_session(tx: &Tx<'_>, key: i64) -> Result<(), PgError> {
    let sql = "DELETE FROM session WHERE key = $1 RETURNING id";
    let Some(row) = tx.row(sql, &[&key]).await? else { return Ok(()) };
    let id = row.text("id")?;
    approvals::forget_session_approvals(tx, &id).await?;
    notices::forget_session_notices(tx, &id).await?;
    tx.execute("INSERT INTO leftover (session) VALUES ($1)", &[&key]).await.map(drop)
}

/// Removes the next few leftover records or kept results, with the bodies that nothing else uses.
/// Returns whether there were any leftovers that no other machine is removing.
pub(super) async fn remove_some_leftovers(tx: &Tx<'_>) -> Result<bool, PgError> {
    let sql = "SELECT session FROM leftover ORDER BY session LIMIT 1 FOR UPDATE SKIP LOCKED";
    let Some(row) = tx.row(sql, &[]).await? else { return Ok(false) };
    let key: i64 = row.value("session")?;
    let sql = "DELETE FROM record WHERE session = $1 AND seq IN
        (SELECT seq FROM record WHERE session = $1 ORDER BY seq LIMIT $2) RETURNING body";
    let mut bodies = tx.keys(sql, &[&key, &STEP_RECORDS_MAX]).await?;
    if bodies.is_empty() {
        bodies = kept_results::remove_first_results(tx, key).await?;
    }
    body::remove_unused_bodies(tx, &bodies).await?;
    if bodies.is_empty() {
        tx.execute("DELETE FROM leftover WHERE session = $1", &[&key]).await?;
    }
    Ok(true)
}
