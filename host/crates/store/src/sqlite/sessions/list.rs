//! Listing sessions, resolving ids, and selecting outdated sessions.

use rusqlite::{Connection, OptionalExtension, params};

use super::session::COLUMNS;
use crate::{
    sessions::{CANDIDATES_MAX, SessionFilter, SessionRow, StoredSession, choose_by_prefix},
    sql_integer::to_sql_integer,
    sqlite::transaction_error::TransactionError,
};

/// Lists the sessions that meet the conditions, most recently used first.
pub(super) fn list_sessions(
    connection: &Connection,
    filter: &SessionFilter,
) -> rusqlite::Result<Vec<StoredSession>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session
         WHERE user = ?1 AND (?2 IS NULL OR folder = ?2) AND (?3 IS NULL OR updated_ms < ?3)
         ORDER BY updated_ms DESC, key DESC LIMIT ?4"
    );
    let limit = to_sql_limit(filter.limit.unwrap_or(usize::MAX));
    let before_ms = filter.before_ms.map(to_sql_integer);
    let values = params![filter.user, filter.folder, before_ms, limit];
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(values, SessionRow::from_row)?;
    rows.map(|row| Ok(row?.session)).collect()
}

/// Resolves an id or the prefix of one.
///
/// # Errors
///
/// No session of the user matches, or several do.
pub(super) fn find_session_by_prefix(
    connection: &Connection,
    user: &str,
    prefix: &str,
) -> Result<StoredSession, TransactionError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session WHERE user = ?1 AND id >= ?2 AND id < ?3
         ORDER BY id LIMIT {}",
        CANDIDATES_MAX + 1
    );
    let mut statement = connection.prepare(&sql)?;
    // Ids are ASCII, so every id with this prefix sorts before the prefix followed by a character
    // beyond ASCII.
    let values = [user, prefix, &format!("{prefix}\u{80}")];
    let rows = statement.query_map(values, SessionRow::from_row)?;
    let found = rows.map(|row| Ok(row?.session)).collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(choose_by_prefix(found, prefix)?)
}

/// Finds the session of a user that was used last. One without records has nothing to continue.
pub(super) fn latest_session(
    connection: &Connection,
    user: &str,
    folder: Option<&str>,
) -> rusqlite::Result<Option<StoredSession>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM session
         WHERE user = ?1 AND records > 0 AND (?2 IS NULL OR folder = ?2)
         ORDER BY updated_ms DESC, key DESC LIMIT 1"
    );
    Ok(connection
        .query_row(&sql, params![user, folder], SessionRow::from_row)
        .optional()?
        .map(|row| row.session))
}

/// Lists the keys of the sessions that are too old, or not among the `keep_max` of their user that
/// were most recently used.
pub(super) fn list_outdated_keys(
    connection: &Connection,
    before_ms: u64,
    keep_max: usize,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT key FROM session WHERE updated_ms < ?1
        UNION
        SELECT key FROM (
            SELECT key, row_number() OVER newest AS place FROM session
            WINDOW newest AS (PARTITION BY user ORDER BY updated_ms DESC, key DESC)
        ) WHERE place > ?2";
    let mut statement = connection.prepare(sql)?;
    statement
        .query_map((to_sql_integer(before_ms), to_sql_limit(keep_max)), |row| row.get(0))?
        .collect()
}

fn to_sql_limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
