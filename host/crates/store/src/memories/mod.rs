//! Memories: what was said, recalled by what it means.
//!
//! A text is kept once for each user, however often it was said, with every place that it comes
//! from. Beside it stands a vector, if a model made one of it. Vectors of different models, or of
//! different lengths, mean different things: only those of one model are ever compared, and whoever
//! recalls is told how many were not. Without vectors the words of the texts are searched.
//!
//! The vectors stand in a plain column, and what compares them is a function of the database: there
//! is no index that could differ from the texts, and every change is one commit.

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

/// The tables of memories. The index has one row for each memory that has words, under its key.
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

/// What a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// It was there from the start of a session.
    Initial,
    /// It is a turn of a session.
    Turn,
}

/// A memory, with the last place that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Names it.
    pub id: u64,
    /// What is remembered; untrusted.
    pub text: String,
    /// The session that it comes from.
    pub session_id: String,
    /// The turn of that session.
    pub turn: u64,
    /// What it is.
    pub kind: MemoryKind,
    /// When it was said, in milliseconds since 1970.
    pub at_ms: u64,
    /// The model that made its vector, or could make none of it; `None` when none was asked.
    pub embedder: Option<String>,
    /// How many numbers its vector has; `None` when it has none.
    pub dimensions: Option<usize>,
}

impl<'s> Memories<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Keeps a text, and returns the number of the memory. One that is there already gets another
    /// place that it comes from, and the new vector if there is one. When a user has too many, those
    /// that were said longest ago go.
    ///
    /// # Errors
    ///
    /// The text is too long, the vector is none, or the database cannot be written.
    pub fn remember(self, memory: &NewMemory<'_>) -> Result<u64, StoreError> {
        let vector = remember::check(memory)?;
        self.store.write(|connection| Ok(remember::remember(connection, memory, vector.as_ref())?))
    }

    /// Returns the memories that are closest to a text, the closest first.
    ///
    /// # Errors
    ///
    /// The vector is none, or the database cannot be read.
    pub fn recall(self, wanted: &Recall<'_>) -> Result<Recalled, StoreError> {
        let by = recall::Key::of(wanted.by)?;
        self.store.read(|connection| Ok(recall::recall(connection, wanted, &by)?))
    }

    /// Returns the memories of a user, the last first, at most `count_max`.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list(self, user: &str, count_max: usize) -> Result<Vec<Memory>, StoreError> {
        self.store.read(|connection| Ok(recall::list(connection, user, count_max)?))
    }

    /// Returns the memories of a user that hold all words of a text, the best first, as
    /// [`Sessions::search`](crate::Sessions::search) finds records.
    ///
    /// # Errors
    ///
    /// The text is too long, or the database cannot be read.
    pub fn search(
        self,
        user: &str,
        query: &str,
        count_max: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        recall::check_query(query)?;
        self.store.read(|connection| Ok(recall::search(connection, user, query, count_max)?))
    }

    /// Returns memories that a model was not asked for a vector of, or that have one of another
    /// model, or of another length than `dimensions` where that is known; the oldest first, with
    /// their texts, so that it can be made.
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

    /// Gives a memory the vector that a model has made of it. Tells whether there is such a memory.
    ///
    /// # Errors
    ///
    /// The vector is none, or the database cannot be written.
    pub fn embed(self, user: &str, id: u64, vector: Vector<'_>) -> Result<bool, StoreError> {
        let vector = remember::Kept::of(vector)?;
        self.store.write(|connection| Ok(remember::embed(connection, user, id, &vector)?))
    }

    /// Writes down that a model can make no vector of a memory, so that it is not asked again. Tells
    /// whether there is such a memory.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn embed_nothing(self, user: &str, id: u64, embedder: &str) -> Result<bool, StoreError> {
        self.store.write(|connection| {
            Ok(remember::embed(connection, user, id, &remember::Kept::nothing(embedder))?)
        })
    }

    /// Forgets memories of a user, and returns how many there were.
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
