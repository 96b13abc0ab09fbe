//! Listing sessions, resolving ids, and selecting outdated sessions.

use super::session::{self, COLUMNS};
use crate::{
    postgres::{
        error::PgError,
        transaction::{self, Tx},
        values::{escape, escape_option},
    },
    sessions::{CANDIDATES_MAX, SessionFilter, StoredSession, choose_by_prefix},
    sql_integer::to_sql_integer,
};

/// Lists the sessions that meet the conditions, most recently used first.
pub(super) async fn list_sessions(
    tx: &Tx<'_>,
    filter: &SessionFilter,
) -> Result<Vec<StoredSession>, PgError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session
         WHERE user_id = $1 AND ($2::text IS NULL OR folder = $2)
             AND ($3::bigint IS NULL OR updated_ms < $3)
         ORDER BY updated_ms DESC, key DESC LIMIT $4"
    );
    let (user, folder) = (escape(&filter.user), escape_option(filter.folder.as_deref()));
    let before_ms = filter.before_ms.map(to_sql_integer);
    let limit = to_sql_integer(filter.limit.unwrap_or(usize::MAX) as u64);
    let rows = tx.rows(&sql, &[&user, &folder, &before_ms, &limit]).await?;
    transaction::read_all(&rows, |row| Ok(session::read_session(row)?.session))
}

/// Resolves an id or the prefix of one.
///
/// # Errors
///
/// No session of the user matches, or several do.
pub(super) async fn find_session_by_prefix(
    tx: &Tx<'_>,
    user: &str,
    prefix: &str,
) -> Result<StoredSession, PgError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session WHERE user_id = $1 AND id >= $2 AND id < $3
         ORDER BY id LIMIT {}",
        CANDIDATES_MAX + 1
    );
    // Ids are ASCII, so every id with this prefix sorts before the prefix followed by a character
    // beyond ASCII.
    let end = format!("{prefix}\u{80}");
    let rows = tx.rows(&sql, &[&escape(user), &escape(prefix), &escape(&end)]).await?;
    let found = transaction::read_all(&rows, |row| Ok(session::read_session(row)?.session))?;
    Ok(choose_by_prefix(found, prefix)?)
}

/// Finds the session of a user that was used last. One without records has nothing to continue.
pub(super) async fn latest_session(
    tx: &Tx<'_>,
    user: &str,
    folder: Option<&str>,
) -> Result<Option<StoredSession>, PgError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session
         WHERE user_id = $1 AND records > 0 AND ($2::text IS NULL OR folder = $2)
         ORDER BY updated_ms DESC, key DESC LIMIT 1"
    );
    let row = tx.row(&sql, &[&escape(user), &escape_option(folder)]).await?;
    row.map(|row| Ok(session::read_session(&row)?.session)).transpose()
}

/// Locks the sessions that are too old, or not among the `keep_max` of their user that were most
/// recently used, and returns their keys. A session that is used meanwhile stays.
pub(super) async fn lock_outdated_keys(
    tx: &Tx<'_>,
    before_ms: u64,
    keep_max: usize,
) -> Result<Vec<i64>, PgError> {
    let sql = "SELECT key FROM session WHERE key IN (
            SELECT key FROM session WHERE updated_ms < $1
            UNION
            SELECT key FROM (
                SELECT key, row_number() OVER newest AS place FROM session
                WINDOW newest AS (PARTITION BY user_id ORDER BY updated_ms DESC, key DESC)
            ) AS places WHERE place > $2
        ) ORDER BY key FOR UPDATE SKIP LOCKED";
    tx.keys(sql, &[&to_sql_integer(before_ms), &to_sql_integer(keep_max as u64)]).await
}
