//! Memories: texts of a user's sessions, recalled by their meaning.
//!
//! Each text is stored once per user, with all its sources, however often it occurred. If a model
//! has embedded the text, its vector is stored with it. Vectors of different models or of different
//! lengths have different meanings. So only vectors of one model and length are compared, and a
//! recall reports how many memories were left out. Without vectors, the words of the texts are
//! searched.
//!
//! The vectors are stored in a plain column and compared by an SQL function. No separate vector
//! index can get out of step with the texts, and every change is one commit.

mod distance;
mod forget;
mod recall;
mod remember;

use rusqlite::Row;

pub(crate) use distance::register_vector_functions;
pub use forget::MemorySelection;
pub use recall::{MemoryCriterion, MemoryMatch, MemoryQuery, MemoryQueryResult, VisibleTurns};
pub use remember::{EmbeddingVector, NewMemory};

use crate::{
    database::{self, foreign_value_error, from_sql_integer},
    error::StoreError,
    store::HostStore,
};

/// The tables of memories. The index has one row for each memory that has words, under the same
/// key.
pub(crate) const TABLES: &str = "
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

/// The memories of all users.
#[derive(Debug, Clone, Copy)]
pub struct MemoryStore<'s> {
    store: &'s HostStore,
}

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredMemoryKind {
    /// A memory that a session had from its start.
    Initial,
    /// A turn of a session.
    Turn,
}

/// A memory, with its latest source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMemory {
    /// The id of the memory.
    pub id: u64,
    /// The remembered text; untrusted.
    pub text: String,
    /// The session that it comes from.
    pub session_id: String,
    /// The turn of that session.
    pub turn: u64,
    /// The kind of the memory.
    pub kind: StoredMemoryKind,
    /// The time of the text, in milliseconds since 1970.
    pub at_ms: u64,
    /// The model that was asked for a vector, even if it could make none; `None` if no model was
    /// asked.
    pub embedder: Option<String>,
    /// How many numbers the vector has; `None` without a vector.
    pub dimensions: Option<usize>,
}

impl<'s> MemoryStore<'s> {
    pub(crate) fn new(store: &'s HostStore) -> Self {
        Self { store }
    }

    /// Stores a text, and returns the id of the memory. A text that is stored already gets one more
    /// source, and the new vector if there is one. If the user has too many memories, the oldest
    /// are removed.
    ///
    /// # Errors
    ///
    /// The text is too long, the vector is invalid, or the database cannot be written.
    pub fn store_memory(self, memory: &NewMemory<'_>) -> Result<u64, StoreError> {
        let vector = remember::check_memory(memory)?;
        self.store.write_transaction(|connection| {
            Ok(remember::store_memory(connection, memory, vector.as_ref())?)
        })
    }

    /// Returns the memories that are closest to a text, closest first.
    ///
    /// # Errors
    ///
    /// The vector is invalid, or the database cannot be read.
    pub fn recall(self, wanted: &MemoryQuery<'_>) -> Result<MemoryQueryResult, StoreError> {
        let search_key = recall::MemorySearchKey::from_criterion(wanted.criterion)?;
        self.store.read_transaction(|connection| {
            Ok(recall::recall_memories(connection, wanted, &search_key)?)
        })
    }

    /// Returns the newest memories of a user, newest first, at most `count_max`.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list_newest(
        self,
        user: &str,
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        self.store
            .read_transaction(|connection| Ok(recall::list_newest(connection, user, count_max)?))
    }

    /// Returns the memories of a user that contain all words of a query, best first, at most
    /// `count_max`. Matches as [`SessionStore::search`](crate::SessionStore::search_records) does.
    ///
    /// # Errors
    ///
    /// The query is too long, or the database cannot be read.
    pub fn search(
        self,
        user: &str,
        query: &str,
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        recall::check_query(query)?;
        self.store.read_transaction(|connection| {
            Ok(recall::search_memories(connection, user, query, count_max)?)
        })
    }

    /// Returns memories that still need a vector of this model, oldest first, at most `count_max`.
    ///
    /// Those are the memories whose vector no model was asked for, and those that have a vector of
    /// another model or, if `dimensions` is known, of another length.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list_without_vector(
        self,
        user: &str,
        (embedder, dimensions): (&str, Option<usize>),
        count_max: usize,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        let made = (embedder, dimensions);
        self.store.read_transaction(|connection| {
            Ok(recall::list_without_vector(connection, user, made, count_max)?)
        })
    }

    /// Stores the vector that a model made of a memory. Returns whether the memory exists.
    ///
    /// # Errors
    ///
    /// The vector is invalid, or the database cannot be written.
    pub fn store_vector(
        self,
        user: &str,
        id: u64,
        vector: EmbeddingVector<'_>,
    ) -> Result<bool, StoreError> {
        let vector = remember::StoredVector::from_vector(vector)?;
        self.store.write_transaction(|connection| {
            Ok(remember::store_vector(connection, user, id, &vector)?)
        })
    }

    /// Records that a model cannot embed a memory, so that it is not asked again. Returns whether
    /// the memory exists.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn mark_unembeddable(
        self,
        user: &str,
        id: u64,
        embedder: &str,
    ) -> Result<bool, StoreError> {
        self.store.write_transaction(|connection| {
            Ok(remember::store_vector(
                connection,
                user,
                id,
                &remember::StoredVector::unembeddable(embedder),
            )?)
        })
    }

    /// Forgets memories of a user, and returns their number.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn forget(self, user: &str, which: MemorySelection<'_>) -> Result<usize, StoreError> {
        let count = self.store.write_transaction(|connection| {
            Ok(forget::forget_memories(connection, user, which)?)
        })?;
        if count > 0 {
            self.store.with_connection(|connection| {
                database::truncate_wal(connection);
                Ok(())
            })?;
        }
        Ok(count)
    }
}

impl StoredMemory {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: from_sql_integer(row.get("key")?),
            text: row.get("text")?,
            session_id: row.get("session_id")?,
            turn: from_sql_integer(row.get("turn")?),
            kind: StoredMemoryKind::from_row(row)?,
            at_ms: from_sql_integer(row.get("at_ms")?),
            embedder: row.get("embedder")?,
            dimensions: row.get::<_, Option<i64>>("dimensions")?.and_then(|n| n.try_into().ok()),
        })
    }
}

impl StoredMemoryKind {
    const ALL: [Self; 2] = [Self::Initial, Self::Turn];

    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Turn => "turn",
        }
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let word: String = row.get("kind")?;
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| foreign_value_error(row, "kind", "it is no kind of a memory"))
    }
}
