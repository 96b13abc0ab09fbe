//! Sessions: the complete history of each conversation, as an append-only list of records.
//!
//! A record is one entry of the session's journal: a kind, a time and a body. The body is JSON to
//! its writer and plain text here. A body is stored once under its hash, however many records use
//! it, so a fork costs one row per record and no text. A body is removed with the last record that
//! uses it.
//!
//! **Who may write.** A writer passes the number of records that it knows of. If another process
//! has appended some meanwhile, nothing is written and the call fails with an error that reports
//! this, so two processes that continue the same session never mix their records.
//!
//! **What a crash may leave.** Records are written in one commit with everything that belongs to
//! them. A killed process leaves all records that it had committed, and their texts can be
//! searched. A removal that is cut short is finished by the next one; the session itself is gone
//! from the first commit on.
//!
//! Suggested reading order: [`session`], [`record`], `append.rs`, [`read`], [`list`], [`search`],
//! `fork.rs`, `remove.rs`.

pub mod list;
pub mod read;
pub mod record;
pub mod search;
pub mod session;

mod append;
mod body;
mod fork;
mod remove;

use rusqlite::Connection;

use crate::{database, error::StoreError, store::HostStore, transaction_error::TransactionError};

pub use list::SessionFilter;
pub use read::SessionRecords;
pub use record::{NewRecord, StoredRecord};
use remove::IndexMergePhase;
pub use search::{SessionSearchMatch, SnippetPiece};

pub use session::{NewSession, StoredSession, StoredUsage};

/// The tables of sessions.
///
/// A record refers to its session and its body by key, which is shorter than the id and the hash. A
/// session's key is never reused, because records of a removed session may still wait for their
/// removal; `leftover` lists those sessions.
///
/// The index has one row for each body that has words, under the body's key. Its tokens are runs of
/// letters, marks and digits, compared without case and accents. `usermerge` allows a merge of the
/// index even if it has only two segments.
pub(crate) const TABLES: &str = "
    CREATE TABLE session (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        model TEXT NOT NULL,
        folder TEXT,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        parent_id TEXT,
        parent_records INTEGER NOT NULL,
        records INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        cost_micro_usd INTEGER
    ) STRICT;
    CREATE TABLE body (
        key INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        text TEXT NOT NULL
    ) STRICT;
    CREATE TABLE record (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body INTEGER NOT NULL REFERENCES body (key),
        turns INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        cost_micro_usd INTEGER,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX record_body ON record (body);
    CREATE TABLE leftover (session INTEGER PRIMARY KEY) STRICT;
    CREATE VIRTUAL TABLE words USING fts5 (
        text, tokenize = \"unicode61 remove_diacritics 2 categories 'L* M* N* Co'\"
    );
    INSERT INTO words (words, rank) VALUES ('usermerge', 2);
";

/// All sessions of the store.
#[derive(Debug, Clone, Copy)]
pub struct SessionStore<'s> {
    store: &'s HostStore,
}

impl<'s> SessionStore<'s> {
    pub(crate) fn new(store: &'s HostStore) -> Self {
        Self { store }
    }

    /// Creates a session without records.
    ///
    /// # Errors
    ///
    /// The id exists already or is invalid, a text is too long, or the database cannot be written.
    pub fn create(self, session: &NewSession<'_>) -> Result<(), StoreError> {
        session.check_fields()?;
        self.write_transaction(|connection| session::insert_session(connection, session))
    }

    /// Appends records to a session that has `expected` of them, all or none, and returns the new
    /// number of records.
    ///
    /// # Errors
    ///
    /// [`StoreError::ConcurrentAppend`] if the session has another number of records by now; no
    /// session has this id; there are too many records or one is too long; or the database cannot
    /// be written.
    pub fn append_records(
        self,
        id: &str,
        expected: u64,
        records: &[NewRecord<'_>],
    ) -> Result<u64, StoreError> {
        records.iter().try_for_each(NewRecord::check_lengths)?;
        self.write_transaction(|connection| {
            append::append_records(connection, id, expected, records)
        })
    }

    /// Returns the session with exactly this id.
    ///
    /// # Errors
    ///
    /// No session has this id, or the database cannot be read.
    pub fn get(self, id: &str) -> Result<StoredSession, StoreError> {
        self.read_transaction(|connection| Ok(session::find_session_row(connection, id)?.session))
    }

    /// Returns the records of a session in order. Pages are read on demand. Records that are
    /// appended after this call are not included.
    ///
    /// # Errors
    ///
    /// No session has this id, or the database cannot be read.
    pub fn read_records(self, id: &str) -> Result<SessionRecords<'s>, StoreError> {
        let row = self.read_transaction(|connection| session::find_session_row(connection, id))?;
        Ok(SessionRecords::new(self.store, row))
    }

    /// Returns the sessions that meet the conditions, most recently used first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list(self, filter: &SessionFilter<'_>) -> Result<Vec<StoredSession>, StoreError> {
        self.read_transaction(|connection| Ok(list::list_sessions(connection, filter)?))
    }

    /// Returns the session with this id, or the only one whose id starts with `prefix`.
    ///
    /// # Errors
    ///
    /// No session matches, several do, or the database cannot be read.
    pub fn find_by_prefix(self, prefix: &str) -> Result<StoredSession, StoreError> {
        self.read_transaction(|connection| list::find_session_by_prefix(connection, prefix))
    }

    /// Returns the most recently used session that has records; with a folder, only sessions
    /// started in it.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn latest_session(self, folder: Option<&str>) -> Result<Option<StoredSession>, StoreError> {
        self.read_transaction(|connection| Ok(list::latest_session(connection, folder)?))
    }

    /// Returns the records that contain all words of a query, best first, at most `hits_max`.
    ///
    /// A word of at least three bytes also matches longer words that begin with it, ranked lower.
    /// Words in double quotes match exactly and next to each other. Every text is a valid query; no
    /// other character has a meaning. A record that a fork shares with its parent is only found in
    /// the parent, as long as the parent exists.
    ///
    /// # Errors
    ///
    /// The query is too long, or the database cannot be read.
    pub fn search_records(
        self,
        query: &str,
        hits_max: usize,
    ) -> Result<Vec<SessionSearchMatch>, StoreError> {
        search::check_query(query)?;
        self.read_transaction(|connection| Ok(search::search_records(connection, query, hits_max)?))
    }

    /// Changes the title of a session. A title that is too long is cut.
    ///
    /// # Errors
    ///
    /// No session has this id, or the database cannot be written.
    pub fn rename(self, id: &str, title: &str) -> Result<(), StoreError> {
        self.write_transaction(|connection| session::rename_session(connection, id, title))
    }

    /// Records the model that a session uses from now on.
    ///
    /// # Errors
    ///
    /// No session has this id, the name is too long, or the database cannot be written.
    pub fn switch_model(self, id: &str, model: &str) -> Result<(), StoreError> {
        session::check_model(model)?;
        self.write_transaction(|connection| session::switch_model(connection, id, model))
    }

    /// Creates a session with the first `records` of another, and with its title, model and folder.
    ///
    /// # Errors
    ///
    /// No session has the id `from` or it has fewer records, the new id exists already or is
    /// invalid, or the database cannot be written.
    pub fn fork(self, from: &str, records: u64, id: &str, at_ms: u64) -> Result<(), StoreError> {
        session::check_id(id)?;
        self.write_transaction(|connection| {
            fork::fork_session(connection, from, records, id, at_ms)
        })
    }

    /// Removes a session with its approvals, and all bodies that no other session uses. Forks keep
    /// the records that they share with it.
    ///
    /// # Errors
    ///
    /// No session has this id, or the database cannot be written. In the latter case the session
    /// may be gone already, and the next removal removes the rest.
    pub fn remove(self, id: &str) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            remove::detach_session(connection, session::find_session_row(connection, id)?.key)
        })?;
        self.remove_leftovers()
    }

    /// Removes the sessions that were last used before a time, in milliseconds since 1970, and all
    /// but the `keep_max` most recently used. Returns how many were removed.
    ///
    /// # Errors
    ///
    /// As with [`remove`](Self::remove).
    pub fn prune(self, before_ms: u64, keep_max: usize) -> Result<usize, StoreError> {
        let removed = self.write_transaction(|connection| {
            let keys = list::list_outdated_keys(connection, before_ms, keep_max)?;
            keys.iter().try_for_each(|key| remove::detach_session(connection, *key))?;
            Ok(keys.len())
        })?;
        self.remove_leftovers()?;
        Ok(removed)
    }

    /// Removes everything that belongs to no session, in many short commits, so that other writers
    /// get their turn.
    fn remove_leftovers(self) -> Result<(), StoreError> {
        if !self.write_transaction(|connection| Ok(remove::remove_some_leftovers(connection)?))? {
            return Ok(());
        }
        while self.write_transaction(|connection| Ok(remove::remove_some_leftovers(connection)?))? {
        }
        let mut phase = IndexMergePhase::Begin;
        while self
            .write_transaction(|connection| Ok(remove::merge_index_step(connection, phase)?))?
        {
            phase = IndexMergePhase::Continue;
        }
        self.store.with_connection(|connection| {
            database::truncate_wal(connection);
            Ok(())
        })
    }

    fn write_transaction<T>(
        self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.store.write_transaction(work)
    }

    fn read_transaction<T>(
        self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        self.store.read_transaction(work)
    }
}
