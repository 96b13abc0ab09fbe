//! The rows of sessions.

use tokio_postgres::Row;

use crate::{
    error::StoreError,
    postgres::{
        error::PgError,
        transaction::Tx,
        values::{Columns, escape, escape_option},
    },
    sessions::{
        NewSession, SessionRow, SessionTotals, StoredSession, StoredUsage, missing_session_error,
        truncate_title,
    },
    sql_integer::to_sql_integer,
};

/// The columns that [`read_session`] expects.
pub(super) const COLUMNS: &str = "key, user_id, id, title, model, folder, created_ms, updated_ms,
    parent_id, parent_records, records, turns, tokens, cost_micro_usd, last_kept";

/// Reads a row with [`COLUMNS`].
pub(super) fn read_session(row: &Row) -> Result<SessionRow, PgError> {
    let session = StoredSession {
        user: row.text("user_id")?,
        id: row.text("id")?,
        title: row.text("title")?,
        model: row.text("model")?,
        folder: row.text_option("folder")?,
        created_ms: row.number("created_ms")?,
        updated_ms: row.number("updated_ms")?,
        parent_id: row.text_option("parent_id")?,
        parent_records: row.number("parent_records")?,
        records: row.number("records")?,
        used: read_usage(row)?,
    };
    Ok(SessionRow { key: row.value("key")?, session, last_kept: row.number("last_kept")? })
}

pub(super) fn read_usage(row: &Row) -> Result<StoredUsage, PgError> {
    Ok(StoredUsage {
        turns: row.number("turns")?,
        tokens: row.number("tokens")?,
        cost_micro_usd: row.number_option("cost_micro_usd")?,
    })
}

/// Finds a session of a user by its whole id.
///
/// # Errors
///
/// No session of the user has this id.
pub(super) async fn find_session(tx: &Tx<'_>, user: &str, id: &str) -> Result<SessionRow, PgError> {
    find(tx, user, id, "").await
}

/// [`find_session`], and locks it up to the end of the transaction.
pub(super) async fn lock_session(tx: &Tx<'_>, user: &str, id: &str) -> Result<SessionRow, PgError> {
    find(tx, user, id, "FOR UPDATE").await
}

async fn find(tx: &Tx<'_>, user: &str, id: &str, lock: &str) -> Result<SessionRow, PgError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE user_id = $1 AND id = $2 {lock}");
    match tx.row(&sql, &[&escape(user), &escape(id)]).await? {
        Some(row) => read_session(&row),
        None => Err(missing_session_error(id).into()),
    }
}

/// Inserts a session without records, and returns its key.
///
/// # Errors
///
/// The id exists already.
pub(super) async fn insert_session(tx: &Tx<'_>, session: &NewSession) -> Result<i64, PgError> {
    let sql = "INSERT INTO session (user_id, id, title, model, folder, created_ms, updated_ms,
            parent_records, records, turns, tokens)
        VALUES ($1, $2, $3, $4, $5, $6, $6, 0, 0, 0, 0)
        ON CONFLICT (id) DO NOTHING RETURNING key";
    let NewSession { user, id, title, model, folder, created_ms } = session;
    let (user, title) = (escape(user), truncate_title(title));
    let (title, model, folder) = (escape(&title), escape(model), escape_option(folder.as_deref()));
    let created_ms = to_sql_integer(*created_ms);
    match tx.row(sql, &[&user, id, &title, &model, &folder, &created_ms]).await? {
        Some(row) => row.value("key"),
        None => Err(StoreError::SessionExists { id: id.clone() }.into()),
    }
}

/// Sets the title or the model of a session.
///
/// # Errors
///
/// No session of the user has this id.
pub(super) async fn set_column(
    tx: &Tx<'_>,
    user: &str,
    id: &str,
    column: &str,
    value: &str,
) -> Result<(), PgError> {
    let sql = format!("UPDATE session SET {column} = $3 WHERE user_id = $1 AND id = $2");
    match tx.execute(&sql, &[&escape(user), &escape(id), &escape(value)]).await? {
        0 => Err(missing_session_error(id).into()),
        _ => Ok(()),
    }
}

/// Sets how many records a session has, and what they used.
pub(super) async fn set_totals(
    tx: &Tx<'_>,
    key: i64,
    totals: &SessionTotals,
) -> Result<(), PgError> {
    let sql = "UPDATE session SET records = $2, updated_ms = greatest(updated_ms, $3), turns = $4,
            tokens = $5, cost_micro_usd = $6
        WHERE key = $1";
    let SessionTotals { records, updated_ms, used } = totals;
    let (records, updated_ms) = (to_sql_integer(*records), to_sql_integer(*updated_ms));
    let (turns, tokens) = (to_sql_integer(used.turns), to_sql_integer(used.tokens));
    let cost = used.cost_micro_usd.map(to_sql_integer);
    tx.execute(sql, &[&key, &records, &updated_ms, &turns, &tokens, &cost]).await.map(drop)
}
