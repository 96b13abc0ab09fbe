//! A session as it is listed, and the figures of its usage.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::TransactionError;
use crate::{
    database::{from_sql_integer, to_sql_integer},
    error::StoreError,
};

/// Longest id. Leaves room for a time and enough random characters in any usual notation.
const ID_BYTES_MAX: usize = 64;

/// Longest title. A list shows one line per session.
const TITLE_CHARS_MAX: usize = 120;

/// Longest name of a model. The names in a large registry are half as long.
const MODEL_BYTES_MAX: usize = 256;

/// Longest path of a folder, which is also Linux's limit.
const FOLDER_BYTES_MAX: usize = 4096;

/// The columns that [`SessionRow::read`] expects.
pub(super) const COLUMNS: &str = "key, id, title, model, folder, created_ms, updated_ms, parent_id,
    parent_records, records, turns, tokens, cost_micro_usd";

/// A session to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession<'s> {
    /// The unique id: ASCII letters, digits, `-`, `_` and `.`.
    pub id: &'s str,
    /// The title. One that is too long is cut.
    pub title: &'s str,
    /// The name of the model.
    pub model: &'s str,
    /// The folder in which it was started.
    pub folder: Option<&'s str>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A session, without its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// The unique id.
    pub id: String,
    /// The title.
    pub title: String,
    /// The name of the model that it uses.
    pub model: String,
    /// The folder in which it was started.
    pub folder: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of its last record, or of its creation, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The session that it was forked from, which may have been removed.
    pub parent_id: Option<String>,
    /// How many of its records were copied from the parent.
    pub parent_records: u64,
    /// How many records it has.
    pub records: u64,
    /// The total usage of its records.
    pub used: StoredUsage,
}

/// The usage of a record or of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredUsage {
    /// Turns of the conversation.
    pub turns: u64,
    /// Tokens that the model read and wrote, in total.
    pub tokens: u64,
    /// Cost in millionths of a US dollar, as far as prices are known; `None` if none is known.
    pub cost_micro_usd: Option<u64>,
}

/// A session with its key in the database.
#[derive(Debug)]
pub(super) struct SessionRow {
    pub(super) key: i64,
    pub(super) session: StoredSession,
}

impl NewSession<'_> {
    /// # Errors
    ///
    /// The id is invalid, or a text is too long.
    pub(super) fn check_fields(&self) -> Result<(), StoreError> {
        check_id(self.id)?;
        check_model(self.model)?;
        check_length("a folder", self.folder.unwrap_or_default(), FOLDER_BYTES_MAX)
    }
}

impl StoredUsage {
    /// Returns the sum of both. Counts saturate; the cost is `None` if both are.
    pub fn saturating_add(self, other: Self) -> Self {
        let costs = [self.cost_micro_usd, other.cost_micro_usd];
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micro_usd: costs.into_iter().flatten().reduce(u64::saturating_add),
        }
    }

    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            turns: from_sql_integer(row.get("turns")?),
            tokens: from_sql_integer(row.get("tokens")?),
            cost_micro_usd: row.get::<_, Option<i64>>("cost_micro_usd")?.map(from_sql_integer),
        })
    }
}

impl SessionRow {
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let session = StoredSession {
            id: row.get("id")?,
            title: row.get("title")?,
            model: row.get("model")?,
            folder: row.get("folder")?,
            created_ms: from_sql_integer(row.get("created_ms")?),
            updated_ms: from_sql_integer(row.get("updated_ms")?),
            parent_id: row.get("parent_id")?,
            parent_records: from_sql_integer(row.get("parent_records")?),
            records: from_sql_integer(row.get("records")?),
            used: StoredUsage::from_row(row)?,
        };
        Ok(Self { key: row.get("key")?, session })
    }
}

/// Checks an id. Ids are typed on command lines and used in file names.
///
/// # Errors
///
/// The id is too long, empty, or has other characters than ASCII letters, digits, `-`, `_` and `.`.
pub(super) fn check_id(id: &str) -> Result<(), StoreError> {
    check_length("the id of a session", id, ID_BYTES_MAX)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if id.is_empty() || !id.bytes().all(fits) {
        return Err(StoreError::InvalidSessionId { text: id.to_owned() });
    }
    Ok(())
}

/// # Errors
///
/// The name is too long.
pub(super) fn check_model(name: &str) -> Result<(), StoreError> {
    check_length("the name of a model", name, MODEL_BYTES_MAX)
}

/// # Errors
///
/// The text is longer than `bytes_max`.
pub(super) fn check_length(
    what: &'static str,
    text: &str,
    bytes_max: usize,
) -> Result<(), StoreError> {
    match text.len() {
        bytes if bytes > bytes_max => Err(StoreError::TooLong { what, bytes, bytes_max }),
        _ => Ok(()),
    }
}

/// Finds a session by its whole id.
///
/// # Errors
///
/// No session has this id.
pub(super) fn find_session_row(
    connection: &Connection,
    id: &str,
) -> Result<SessionRow, TransactionError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?1");
    let row = connection.query_row(&sql, [id], SessionRow::from_row).optional()?;
    Ok(row.ok_or_else(|| missing_session_error(id))?)
}

/// The error for an id that no session has.
pub(super) fn missing_session_error(id: &str) -> StoreError {
    StoreError::SessionNotFound { id: id.chars().take(ID_BYTES_MAX).collect() }
}

/// Inserts a session without records.
///
/// # Errors
///
/// The id exists already.
pub(super) fn insert_session(
    connection: &Connection,
    session: &NewSession<'_>,
) -> Result<(), TransactionError> {
    let sql = "INSERT INTO session
        (id, title, model, folder, created_ms, updated_ms, parent_records, records, turns, tokens)
        VALUES (?1, ?2, ?3, ?4, ?5, ?5, 0, 0, 0, 0)
        ON CONFLICT (id) DO NOTHING";
    let NewSession { id, title, model, folder, created_ms } = *session;
    let values = params![id, truncate_title(title), model, folder, to_sql_integer(created_ms)];
    match connection.execute(sql, values)? {
        0 => Err(StoreError::SessionExists { id: id.to_owned() }.into()),
        _ => Ok(()),
    }
}

/// # Errors
///
/// No session has this id.
pub(super) fn rename_session(
    connection: &Connection,
    id: &str,
    title: &str,
) -> Result<(), TransactionError> {
    let key = find_session_row(connection, id)?.key;
    connection.execute(
        "UPDATE session SET title = ?2 WHERE key = ?1",
        params![key, truncate_title(title)],
    )?;
    Ok(())
}

/// # Errors
///
/// No session has this id.
pub(super) fn switch_model(
    connection: &Connection,
    id: &str,
    model: &str,
) -> Result<(), TransactionError> {
    let key = find_session_row(connection, id)?.key;
    connection.execute("UPDATE session SET model = ?2 WHERE key = ?1", params![key, model])?;
    Ok(())
}

/// Cuts a title to its longest length, with an ellipsis at the end.
fn truncate_title(title: &str) -> String {
    match title.char_indices().nth(TITLE_CHARS_MAX) {
        None => title.to_owned(),
        Some(_) => title.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect(),
    }
}
