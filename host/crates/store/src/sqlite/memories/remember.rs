//! Storing a text, with its source and its vector.

use rusqlite::{Connection, OptionalExtension, params};

use super::forget;
use crate::{
    memories::{
        NewMemory,
        vector::{MEMORIES_MAX, StoredVector},
    },
    sql_integer::{from_sql_integer, to_sql_integer},
    text_index,
};

pub(super) fn store_memory(
    connection: &Connection,
    memory: &NewMemory,
    vector: Option<&StoredVector>,
) -> rusqlite::Result<u64> {
    let key = find_or_insert_text(connection, &memory.user, memory.text.trim())?;
    if let Some(vector) = vector {
        store_vector(connection, &memory.user, from_sql_integer(key), vector)?;
    }
    let sql = "INSERT OR REPLACE INTO memory_source (memory, session_id, turn, kind, at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let (turn, at_ms) = (to_sql_integer(memory.turn), to_sql_integer(memory.at_ms));
    connection.execute(sql, params![key, memory.session_id, turn, memory.kind.as_str(), at_ms])?;
    forget::forget_oldest_memories(connection, &memory.user, MEMORIES_MAX)?;
    Ok(from_sql_integer(key))
}

/// Stores a text unless the user has it already, and returns its key.
fn find_or_insert_text(connection: &Connection, user: &str, text: &str) -> rusqlite::Result<i64> {
    let hash = blake3::hash(text.as_bytes());
    let sql = "SELECT key FROM memory WHERE user = ?1 AND hash = ?2";
    let known = connection.query_row(sql, params![user, hash.as_bytes()], |row| row.get(0));
    if let Some(key) = known.optional()? {
        return Ok(key);
    }
    let sql = "INSERT INTO memory (user, hash, text) VALUES (?1, ?2, ?3)";
    connection.execute(sql, params![user, hash.as_bytes(), text])?;
    let key = connection.last_insert_rowid();
    let indexed = text_index::to_indexed_text(text);
    if !indexed.is_empty() {
        let sql = "INSERT INTO memory_words (rowid, text) VALUES (?1, ?2)";
        connection.execute(sql, params![key, indexed])?;
    }
    Ok(key)
}

pub(super) fn store_vector(
    connection: &Connection,
    user: &str,
    id: u64,
    vector: &StoredVector,
) -> rusqlite::Result<bool> {
    let sql = "UPDATE memory SET embedder = ?3, dimensions = ?4, vector = ?5
        WHERE key = ?1 AND user = ?2";
    let StoredVector { embedder, dimensions, bytes } = vector;
    Ok(connection.execute(sql, params![to_sql_integer(id), user, embedder, dimensions, bytes])? > 0)
}
