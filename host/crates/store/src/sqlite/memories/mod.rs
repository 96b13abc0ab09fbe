//! The memories in SQLite.
//!
//! The vectors are stored in a plain column and compared by an SQL function. No separate vector
//! index can get out of step with the texts, and every change is one commit.

mod distance;
mod forget;
mod recall;
mod remember;

use rusqlite::Row;
use sallyport_contract::async_trait;

pub(super) use distance::register_vector_functions;

use super::{
    SqliteStore,
    database::{self, foreign_value_error},
};
use crate::{
    error::{StoreError, check_length},
    memories::{
        EmbeddingVector, MemoryQuery, MemoryQueryResult, MemorySelection, MemoryStore, NewMemory,
        StoredMemory, StoredMemoryKind,
        vector::{self, QUERY_BYTES_MAX, StoredVector},
    },
    sql_integer::from_sql_integer,
};

/// The tables of memories. The index has one row for each memory that has words, under the same
/// key.
pub(super) const TABLES: &str = "
    CREATE TABLE memory (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        user TEXT NOT NULL,
        hash BLOB NOT NULL,
        text TEXT NOT NULL,
        embedder TEXT,
        dimensions INTEGER,
        vector BLOB,
        UNIQUE (user, hash)
    ) STRICT;
    CREATE TABLE memory_source (
        memory INTEGER NOT NULL REFERENCES memory (key),
        session_id TEXT NOT NULL,
        turn INTEGER NOT NULL,
        kind TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (memory, session_id, turn, kind)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_session ON memory_source (session_id);
    CREATE VIRTUAL TABLE memory_words USING fts5 (
        text, tokenize = \"unicode61 remove_diacritics 2 categories 'L* M* N* Co'\"
    );
";

#[async_trait]
impl MemoryStore for SqliteStore {
    async fn store_memory(&self, memory: NewMemory) -> Result<u64, StoreError> {
        let vector = vector::check_memory(&memory)?;
        self.write(move |open| remember::store_memory(open, &memory, vector.as_ref())).await
    }

    async fn recall(&self, wanted: MemoryQuery) -> Result<MemoryQueryResult, StoreError> {
        let key = recall::MemorySearchKey::from_criterion(&wanted.criterion)?;
        self.read(move |connection| recall::recall_memories(connection, &wanted, &key)).await
    }

    async fn list_newest(
        &self,
        user: &str,
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        let user = user.to_owned();
        self.read(move |connection| recall::list_newest(connection, &user, count_max)).await
    }

    async fn search(
        &self,
        user: &str,
        query: &str,
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        check_length("a query", query, QUERY_BYTES_MAX)?;
        let (user, query) = (user.to_owned(), query.to_owned());
        self.read(move |open| recall::search_memories(open, &user, &query, count_max)).await
    }

    async fn list_without_vector(
        &self,
        user: &str,
        (embedder, dimensions): (&str, Option<usize>),
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        let (user, embedder) = (user.to_owned(), embedder.to_owned());
        self.read(move |connection| {
            recall::list_without_vector(connection, &user, (&embedder, dimensions), count_max)
        })
        .await
    }

    async fn store_vector(
        &self,
        user: &str,
        id: u64,
        vector: EmbeddingVector,
    ) -> Result<bool, StoreError> {
        let (user, vector) = (user.to_owned(), StoredVector::from_vector(&vector)?);
        self.write(move |connection| remember::store_vector(connection, &user, id, &vector)).await
    }

    async fn mark_unembeddable(
        &self,
        user: &str,
        id: u64,
        embedder: &str,
    ) -> Result<bool, StoreError> {
        let (user, vector) = (user.to_owned(), StoredVector::unembeddable(embedder));
        self.write(move |connection| remember::store_vector(connection, &user, id, &vector)).await
    }

    async fn forget(&self, user: &str, which: MemorySelection) -> Result<usize, StoreError> {
        let user = user.to_owned();
        self.run(move |store| {
            let count = store.write_transaction(|connection| {
                Ok(forget::forget_memories(connection, &user, &which)?)
            })?;
            if count > 0 {
                store.with_connection(|connection| {
                    database::truncate_wal(connection);
                    Ok(())
                })?;
            }
            Ok(count)
        })
        .await
    }
}

pub(super) fn read_memory(row: &Row<'_>) -> rusqlite::Result<StoredMemory> {
    Ok(StoredMemory {
        id: from_sql_integer(row.get("key")?),
        text: row.get("text")?,
        session_id: row.get("session_id")?,
        turn: from_sql_integer(row.get("turn")?),
        kind: read_kind(row)?,
        at_ms: from_sql_integer(row.get("at_ms")?),
        embedder: row.get("embedder")?,
        dimensions: row.get::<_, Option<i64>>("dimensions")?.and_then(|n| n.try_into().ok()),
    })
}

fn read_kind(row: &Row<'_>) -> rusqlite::Result<StoredMemoryKind> {
    let word: String = row.get("kind")?;
    let kind = StoredMemoryKind::from_word(&word);
    kind.ok_or_else(|| foreign_value_error(row, "kind", "it is not a kind of memory"))
}
