//! Storing a text, with its source and its vector.

use rusqlite::{Connection, OptionalExtension, params};

use super::forget;
use crate::{
    error::{StoreError, check_length},
    memories::{EmbeddingVector, NewMemory},
    sqlite::{
        database::{from_sql_integer, to_sql_integer},
        text_index,
    },
};

/// Longest text of a memory: a long turn. Embedding models read less.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Most numbers of a vector. The longest vectors of providers have half as many.
const DIMENSIONS_MAX: usize = 8192;

/// Longest name of a model.
const EMBEDDER_BYTES_MAX: usize = 256;

/// Most memories of a user. A recall compares all vectors of a user; at the usual length, this many
/// take a tenth of a second.
const MEMORIES_MAX: u64 = 20_000;

/// A vector as it is stored: scaled to length one, so that no sum over it overflows.
#[derive(Debug)]
pub(super) struct StoredVector {
    pub(super) embedder: String,
    pub(super) dimensions: Option<i64>,
    pub(super) bytes: Option<Vec<u8>>,
}

impl StoredVector {
    /// # Errors
    ///
    /// The vector is empty or zero, has too many numbers, or has one that is not finite; or the
    /// name of the model is too long.
    pub(super) fn from_vector(vector: &EmbeddingVector) -> Result<Self, StoreError> {
        let EmbeddingVector { embedder, values } = vector;
        check_length("the name of a model", embedder, EMBEDDER_BYTES_MAX)?;
        let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        let fits = (1..=DIMENSIONS_MAX).contains(&values.len());
        if !fits || !length.is_finite() || length == 0.0 {
            return Err(StoreError::InvalidVector { dimensions: values.len() });
        }
        let scaled = |value: &f32| ((f64::from(*value) / length) as f32).to_ne_bytes();
        let bytes = values.iter().flat_map(scaled).collect();
        let dimensions = Some(to_sql_integer(values.len() as u64));
        Ok(Self { embedder: embedder.clone(), dimensions, bytes: Some(bytes) })
    }

    /// The entry for a text that the model cannot embed.
    pub(super) fn unembeddable(embedder: &str) -> Self {
        Self { embedder: embedder.to_owned(), dimensions: None, bytes: None }
    }
}

/// # Errors
///
/// The text is too long, or the vector is invalid.
pub(super) fn check_memory(memory: &NewMemory) -> Result<Option<StoredVector>, StoreError> {
    check_length("a memory", &memory.text, TEXT_BYTES_MAX)?;
    memory.vector.as_ref().map(StoredVector::from_vector).transpose()
}

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
