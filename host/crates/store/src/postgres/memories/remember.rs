//! Storing a text, with its source and its vector.

use super::forget;
use crate::{
    memories::{
        NewMemory,
        vector::{MEMORIES_MAX, StoredVector},
    },
    postgres::{
        error::PgError,
        transaction::Tx,
        values::{Columns, escape, escape_option},
        words::IndexedWords,
    },
    sql_integer::{from_sql_integer, to_sql_integer},
};

pub(super) async fn store_memory(
    tx: &Tx<'_>,
    memory: &NewMemory,
    vector: Option<&StoredVector>,
) -> Result<u64, PgError> {
    // Or two that remember at once would both count one less than there are.
    tx.lock("memories", &memory.user).await?;
    let key = find_or_insert_text(tx, &memory.user, memory.text.trim()).await?;
    if let Some(vector) = vector {
        store_vector(tx, &memory.user, from_sql_integer(key), vector).await?;
    }
    let sql = "INSERT INTO memory_source (memory, session_id, turn, kind, at_ms)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (memory, session_id, turn, kind) DO UPDATE SET at_ms = excluded.at_ms";
    let (turn, at_ms) = (to_sql_integer(memory.turn), to_sql_integer(memory.at_ms));
    let (session_id, kind) = (escape(&memory.session_id), memory.kind.as_str());
    tx.execute(sql, &[&key, &session_id, &turn, &kind, &at_ms]).await?;
    forget::forget_oldest_memories(tx, &memory.user, MEMORIES_MAX).await?;
    Ok(from_sql_integer(key))
}

/// Stores a text unless the user has it already, and returns its key.
async fn find_or_insert_text(tx: &Tx<'_>, user: &str, text: &str) -> Result<i64, PgError> {
    let hash = blake3::hash(text.as_bytes());
    let (user, hash) = (escape(user), hash.as_bytes().as_slice());
    let sql = "SELECT key FROM memory WHERE user_id = $1 AND hash = $2";
    if let Some(row) = tx.row(sql, &[&user, &hash]).await? {
        return row.value("key");
    }
    let IndexedWords { vector, count, .. } = IndexedWords::from_text(text);
    let sql = "INSERT INTO memory (user_id, hash, text, words, word_count)
        VALUES ($1, $2, $3, $4::text::tsvector, $5) RETURNING key";
    let row = tx.row(sql, &[&user, &hash, &escape(text), &vector, &count]).await?;
    row.map_or_else(
        || Err(PgError::Foreign("a memory has no key".to_owned())),
        |row| row.value("key"),
    )
}

pub(super) async fn store_vector(
    tx: &Tx<'_>,
    user: &str,
    id: u64,
    vector: &StoredVector,
) -> Result<bool, PgError> {
    let sql = "UPDATE memory SET embedder = $3, dimensions = $4, vector = $5
        WHERE key = $1 AND user_id = $2";
    let StoredVector { embedder, dimensions, bytes } = vector;
    let (key, embedder) = (to_sql_integer(id), escape_option(Some(embedder)));
    Ok(tx.execute(sql, &[&key, &escape(user), &embedder, dimensions, bytes]).await? > 0)
}
