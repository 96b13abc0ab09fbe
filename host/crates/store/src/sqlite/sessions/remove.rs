//! Removing sessions: each disappears immediately, and its records follow in short commits.

use rusqlite::{Connection, OptionalExtension};

use super::{body, kept_results};
use crate::sqlite::{approvals, notices, transaction_error::TransactionError};

/// Records that are removed in one commit, which blocks other writers for some tens of
/// milliseconds.
const STEP_RECORDS_MAX: u32 = 100;

/// Pages of the index, of 4 KiB each, that are rewritten in one commit: some milliseconds.
const STEP_PAGES: i64 = 256;

/// Removes a session from the list, with its approvals and the messages that only it would show.
/// Its records become leftovers.
pub(super) fn detach_session(connection: &Connection, key: i64) -> Result<(), TransactionError> {
    let sql = "DELETE FROM session WHERE key = ?1 RETURNING id";
    let id: String = connection.query_row(sql, [key], |row| row.get(0))?;
    approvals::forget_session_approvals(connection, &id)?;
    notices::forget_session_notices(connection, &id)?;
    connection.execute("INSERT INTO leftover (session) VALUES (?1)", [key])?;
    Ok(())
}

/// Removes the next few leftover records or kept results, with the bodies that nothing else uses. Returns
/// whether there were any leftovers.
pub(super) fn remove_some_leftovers(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT session FROM leftover ORDER BY session LIMIT 1";
    let Some(key) = connection.query_row(sql, (), |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(false);
    };
    let mut bodies = remove_first_records(connection, key)?;
    if bodies.is_empty() {
        bodies = kept_results::remove_first_results(connection, key)?;
    }
    body::remove_unused_bodies(connection, &bodies)?;
    if bodies.is_empty() {
        connection.execute("DELETE FROM leftover WHERE session = ?1", [key])?;
    }
    Ok(true)
}

/// Removes the first records of a session, and returns the keys of their bodies.
fn remove_first_records(connection: &Connection, key: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = "DELETE FROM record WHERE session = ?1 AND seq IN
        (SELECT seq FROM record WHERE session = ?1 ORDER BY seq LIMIT ?2) RETURNING body";
    let mut statement = connection.prepare(sql)?;
    statement.query_map((key, STEP_RECORDS_MAX), |row| row.get(0))?.collect()
}

/// Where to continue removing the words of deleted bodies from the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexMergePhase {
    Begin,
    Continue,
}

/// Rewrites a part of the index. Returns whether there may be more to rewrite.
///
/// The index only marks a row as removed, and keeps its words until their segment is rewritten.
/// (FTS5 can also delete each word immediately, which takes a thousand times as long as writing it
/// did.)
pub(super) fn merge_index_step(
    connection: &Connection,
    phase: IndexMergePhase,
) -> rusqlite::Result<bool> {
    // FTS5 takes a negative number as a request to rewrite the whole index.
    let pages = match phase {
        IndexMergePhase::Begin => -STEP_PAGES,
        IndexMergePhase::Continue => STEP_PAGES,
    };
    let before = connection.total_changes();
    connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?1)", [pages])?;
    // The command itself counts as one change.
    Ok(connection.total_changes() - before > 1)
}
