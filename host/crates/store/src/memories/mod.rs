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

pub(crate) use distance::register;
pub use forget::Forget;
pub use recall::{By, Found, Recall, Recalled, Shown};
pub use remember::{NewMemory, Vector};

use crate::{
    database::{self, foreign, unsigned},
    error::StoreError,
    store::Store,
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
pub struct Memories<'s> {
    store: &'s Store,
}

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// A memory that a session had from its start.
    Initial,
    /// A turn of a session.
    Turn,
}

/// A memory, with its latest source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The id of the memory.
    pub id: u64,
    /// The remembered text; untrusted.
    pub text: String,
    /// The session that it comes from.
    pub session_id: String,
    /// The turn of that session.
    pub turn: u64,
    /// The kind of the memory.
    pub kind: MemoryKind,
    /// The time of the text, in milliseconds since 1970.
    pub at_ms: u64,
    /// The model that was asked for a vector, even if it could make none; `None` if no model was
    /// asked.
    pub embedder: Option<String>,
    /// How many numbers the vector has; `None` without a vector.
    pub dimensions: Option<usize>,
}

impl<'s> Memories<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Stores a text, and returns the id of the memory. A text that is stored already gets one more
    /// source, and the new vector if there is one. If the user has too many memories, the oldest
    /// are removed.
    ///
    /// # Errors
    ///
    /// The text is too long, the vector is invalid, or the database cannot be written.
    pub fn remember(self, memory: &NewMemory<'_>) -> Result<u64, StoreError> {
        let vector = remember::check(memory)?;
        self.store.write(|connection| Ok(remember::remember(connection, memory, vector.as_ref())?))
    }

    /// Returns the memories that are closest to a text, closest first.
    ///
    /// # Errors
    ///
    /// The vector is invalid, or the database cannot be read.
    pub fn recall(self, wanted: &Recall<'_>) -> Result<Recalled, StoreError> {
        let by = recall::Key::of(wanted.by)?;
        self.store.read(|connection| Ok(recall::recall(connection, wanted, &by)?))
    }

    /// Returns the newest memories of a user, newest first, at most `count_max`.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list(self, user: &str, count_max: usize) -> Result<Vec<Memory>, StoreError> {
        self.store.read(|connection| Ok(recall::list(connection, user, count_max)?))
    }

    /// Returns the memories of a user that contain all words of a query, best first, at most
    /// `count_max`. Matches as [`Sessions::search`](crate::Sessions::search) does.
    ///
    /// # Errors
    ///
    /// The query is too long, or the database cannot be read.
    pub fn search(
        self,
        user: &str,
        query: &str,
        count_max: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        recall::check_query(query)?;
        self.store.read(|connection| Ok(recall::search(connection, user, query, count_max)?))
    }

    /// Returns memories that still need a vector of this model, oldest first, at most `count_max`.
    ///
    /// Those are the memories whose vector no model was asked for, and those that have a vector of
    /// another model or, if `dimensions` is known, of another length.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn without_vector(
        self,
        user: &str,
        (embedder, dimensions): (&str, Option<usize>),
        count_max: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        let made = (embedder, dimensions);
        self.store.read(|connection| Ok(recall::without_vector(connection, user, made, count_max)?))
    }

    /// Stores the vector that a model made of a memory. Returns whether the memory exists.
    ///
    /// # Errors
    ///
    /// The vector is invalid, or the database cannot be written.
    pub fn embed(self, user: &str, id: u64, vector: Vector<'_>) -> Result<bool, StoreError> {
        let vector = remember::Kept::of(vector)?;
        self.store.write(|connection| Ok(remember::embed(connection, user, id, &vector)?))
    }

    /// Records that a model cannot embed a memory, so that it is not asked again. Returns whether
    /// the memory exists.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn embed_nothing(self, user: &str, id: u64, embedder: &str) -> Result<bool, StoreError> {
        self.store.write(|connection| {
            Ok(remember::embed(connection, user, id, &remember::Kept::nothing(embedder))?)
        })
    }

    /// Forgets memories of a user, and returns their number.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn forget(self, user: &str, which: Forget<'_>) -> Result<usize, StoreError> {
        let count = self.store.write(|connection| Ok(forget::forget(connection, user, which)?))?;
        if count > 0 {
            self.store.with(|connection| {
                database::forget_log_of_writes(connection);
                Ok(())
            })?;
        }
        Ok(count)
    }
}

impl Memory {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: unsigned(row.get("key")?),
            text: row.get("text")?,
            session_id: row.get("session_id")?,
            turn: unsigned(row.get("turn")?),
            kind: MemoryKind::read(row)?,
            at_ms: unsigned(row.get("at_ms")?),
            embedder: row.get("embedder")?,
            dimensions: row.get::<_, Option<i64>>("dimensions")?.and_then(|n| n.try_into().ok()),
        })
    }
}

impl MemoryKind {
    const ALL: [Self; 2] = [Self::Initial, Self::Turn];

    /// The kind in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Turn => "turn",
        }
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let word: String = row.get("kind")?;
        let kind = Self::ALL.into_iter().find(|kind| kind.word() == word);
        kind.ok_or_else(|| foreign(row, "kind", "it is no kind of a memory"))
    }
}
