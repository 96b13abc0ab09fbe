//! The body of a record, stored once under its hash, with its words in the index.

use blake3::OUT_LEN;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::text_index;

/// Stores a body unless it is stored already, and returns its key.
pub(super) fn find_or_insert_body(
    connection: &Connection,
    text: &str,
    search: &str,
) -> rusqlite::Result<i64> {
    let hash = blake3::hash(text.as_bytes());
    let sql = "SELECT key FROM body WHERE hash = ?1";
    let known = connection.query_row(sql, [hash.as_bytes()], |row| row.get(0)).optional()?;
    if let Some(key) = known {
        return Ok(key);
    }
    let sql = "INSERT INTO body (hash, text) VALUES (?1, ?2)";
    connection.execute(sql, params![hash.as_bytes(), text])?;
    let key = connection.last_insert_rowid();
    let indexed = text_index::to_indexed_text(search);
    if !indexed.is_empty() {
        let sql = "INSERT INTO words (rowid, text) VALUES (?1, ?2)";
        connection.execute(sql, params![key, indexed])?;
    }
    Ok(key)
}

/// Removes those of the given bodies that no record and no kept result uses.
pub(super) fn remove_unused_bodies(connection: &Connection, keys: &[i64]) -> rusqlite::Result<()> {
    let mut used = connection.prepare(
        "SELECT 1 FROM record WHERE body = ?1 UNION ALL SELECT 1 FROM kept_result WHERE body = ?1",
    )?;
    let mut forget = connection.prepare("DELETE FROM words WHERE rowid = ?1")?;
    let mut remove = connection.prepare("DELETE FROM body WHERE key = ?1")?;
    for key in keys {
        if !used.exists([key])? {
            forget.execute([key])?;
            remove.execute([key])?;
        }
    }
    Ok(())
}

/// Reads the columns `text` and `hash`; `None` if the text does not match its hash.
pub(super) fn read_verified_text(row: &Row<'_>) -> rusqlite::Result<Option<String>> {
    let text: String = row.get("text")?;
    let hash: [u8; OUT_LEN] = row.get("hash")?;
    Ok((blake3::hash(text.as_bytes()) == hash).then_some(text))
}
