//! The rows of sessions.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    error::StoreError,
    sessions::{
        NewSession, SessionRow, StoredSession, StoredUsage, missing_session_error, truncate_title,
    },
    sql_integer::{from_sql_integer, to_sql_integer},
    sqlite::transaction_error::TransactionError,
};

/// The columns that [`SessionRow::from_row`] expects.
pub(super) const COLUMNS: &str =
    "key, user, id, title, model, folder, created_ms, updated_ms, parent_id,
    parent_records, records, turns, tokens, cost_micro_usd, last_kept";

impl SessionRow {
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let session = StoredSession {
            user: row.get("user")?,
            id: row.get("id")?,
            title: row.get("title")?,
            model: row.get("model")?,
            folder: row.get("folder")?,
            created_ms: from_sql_integer(row.get("created_ms")?),
            updated_ms: from_sql_integer(row.get("updated_ms")?),
            parent_id: row.get("parent_id")?,
            parent_records: from_sql_integer(row.get("parent_records")?),
            records: from_sql_integer(row.get("records")?),
            used: read_usage(row)?,
        };
        let last_kept = from_sql_integer(row.get("last_kept")?);
        Ok(Self { key: row.get("key")?, session, last_kept })
    }
}

/// Finds a session of a user by its whole id.
///
/// # Errors
///
/// No session of the user has this id.
pub(super) fn find_session_row(
    connection: &Connection,
    user: &str,
    id: &str,
) -> Result<SessionRow, TransactionError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE user = ?1 AND id = ?2");
    let row = connection.query_row(&sql, [user, id], SessionRow::from_row).optional()?;
    Ok(row.ok_or_else(|| missing_session_error(id))?)
}

/// Inserts a session without records.
///
/// # Errors
///
/// The id exists already.
pub(super) fn insert_session(
    connection: &Connection,
    session: &NewSession,
) -> Result<(), TransactionError> {
    let sql = "INSERT INTO session
        (user, id, title, model, folder, created_ms, updated_ms, parent_records, records, turns,
         tokens)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 0, 0, 0, 0)
        ON CONFLICT (id) DO NOTHING";
    let NewSession { user, id, title, model, folder, created_ms } = session;
    let created_ms = to_sql_integer(*created_ms);
    let values = params![user, id, truncate_title(title), model, folder, created_ms];
    match connection.execute(sql, values)? {
        0 => Err(StoreError::SessionExists { id: id.clone() }.into()),
        _ => Ok(()),
    }
}

pub(super) fn read_usage(row: &Row<'_>) -> rusqlite::Result<StoredUsage> {
    Ok(StoredUsage {
        turns: from_sql_integer(row.get("turns")?),
        tokens: from_sql_integer(row.get("tokens")?),
        cost_micro_usd: row.get::<_, Option<i64>>("cost_micro_usd")?.map(from_sql_integer),
    })
}

/// Sets the title or the model of a session.
///
/// # Errors
///
/// No session of the user has this id.
pub(super) fn set_column(
    connection: &Connection,
    user: &str,
    id: &str,
    column: &str,
    value: &str,
) -> Result<(), TransactionError> {
    let key = find_session_row(connection, user, id)?.key;
    let sql = format!("UPDATE session SET {column} = ?2 WHERE key = ?1");
    connection.execute(&sql, params![key, value])?;
    Ok(())
}
