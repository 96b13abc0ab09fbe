//! Sessions: what was said and done in each, as records that are only ever added.
//!
//! A record is a line of the session's journal: a kind, a moment, and a body, which is JSON to those
//! who write it and plain text here. A body is kept once however many records have it, found by its
//! hash; so a fork costs a row for each record and no text. A body that no record has any more is
//! removed with the last of them.
//!
//! **Who may write.** Whoever adds to a session says how many records it knows of. When another
//! process has added some meanwhile, nothing is written and the error says so: two that go on with
//! the same session never mix.
//!
//! **What a crash may leave.** Records come in one commit with everything that belongs to them, so
//! a process that is killed leaves the records that it had written, and the text of all of them can
//! be found. A removal that is cut short is finished by the next one; the session itself is gone
//! from its first commit on.
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

use crate::{database, error::StoreError, refusal::Refusal, store::Store};

pub use list::SessionFilter;
pub use read::SessionRecords;
pub use record::{NewRecord, Record};
use remove::Erasing;
pub use search::{Hit, Piece};

pub use session::{NewSession, Session, Used};

/// The tables of sessions. A record names its session and its body by their keys, which are
/// shorter than the id and the hash. A session's key is never given to another, since records of a
/// removed one may still wait to be removed; `leftover` names those.
///
/// The index has one row for each body that has words, under the body's key. Its tokens are runs of
/// letters, marks and digits, compared without case and accents. `usermerge` lets it be written anew
/// however few parts it has.
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
pub struct Sessions<'s> {
    store: &'s Store,
}

impl<'s> Sessions<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Begins a session, without records.
    ///
    /// # Errors
    ///
    /// There is one of this id, a text is too long, or the database cannot be written.
    pub fn create(self, session: &NewSession<'_>) -> Result<(), StoreError> {
        session.check()?;
        self.write(|connection| session::insert(connection, session))
    }

    /// Adds records to a session that has `expected` of them, all or none, and returns how many it
    /// has then.
    ///
    /// # Errors
    ///
    /// [`StoreError::WentOn`] if the session has another number of records by now; there is no such
    /// session; there are too many records or one is too long; or the database cannot be written.
    pub fn append(
        self,
        id: &str,
        expected: u64,
        records: &[NewRecord<'_>],
    ) -> Result<u64, StoreError> {
        records.iter().try_for_each(NewRecord::check)?;
        self.write(|connection| append::append(connection, id, expected, records))
    }

    /// Returns a session of exactly this id.
    ///
    /// # Errors
    ///
    /// There is no such session, or the database cannot be read.
    pub fn get(self, id: &str) -> Result<Session, StoreError> {
        self.read_only(|connection| Ok(session::row(connection, id)?.session))
    }

    /// Returns the records of a session in their order, read as they are asked for. Those that are
    /// added from now on are not among them.
    ///
    /// # Errors
    ///
    /// There is no such session, or the database cannot be read.
    pub fn read(self, id: &str) -> Result<SessionRecords<'s>, StoreError> {
        let row = self.read_only(|connection| session::row(connection, id))?;
        Ok(SessionRecords::new(self.store, row))
    }

    /// Returns the sessions that pass a filter, the one that was used last first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list(self, filter: &SessionFilter<'_>) -> Result<Vec<Session>, StoreError> {
        self.read_only(|connection| Ok(list::list(connection, filter)?))
    }

    /// Returns the session of this id, or the only one whose id begins like this.
    ///
    /// # Errors
    ///
    /// There is none, there are several, or the database cannot be read.
    pub fn find(self, prefix: &str) -> Result<Session, StoreError> {
        self.read_only(|connection| list::find(connection, prefix))
    }

    /// Returns the session with records that was used last; with a folder, in that folder.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn latest(self, folder: Option<&str>) -> Result<Option<Session>, StoreError> {
        self.read_only(|connection| Ok(list::latest(connection, folder)?))
    }

    /// Returns the records that hold all words of a text, the best first.
    ///
    /// A word also finds longer ones that begin with it, ranked lower; words between double quotes
    /// are found next to each other and as they are. Every text is a query, and no sign in it means
    /// anything else. What a fork has from a session that is still there is found there.
    ///
    /// # Errors
    ///
    /// The text is too long, or the database cannot be read.
    pub fn search(self, query: &str, hits_max: usize) -> Result<Vec<Hit>, StoreError> {
        search::check(query)?;
        self.read_only(|connection| Ok(search::search(connection, query, hits_max)?))
    }

    /// Gives a session another title. Of one that is too long, the start is kept.
    ///
    /// # Errors
    ///
    /// There is no such session, or the database cannot be written.
    pub fn rename(self, id: &str, title: &str) -> Result<(), StoreError> {
        self.write(|connection| session::rename(connection, id, title))
    }

    /// Writes down which model a session talks with from now on.
    ///
    /// # Errors
    ///
    /// There is no such session, the name is too long, or the database cannot be written.
    pub fn switch_model(self, id: &str, model: &str) -> Result<(), StoreError> {
        session::check_model(model)?;
        self.write(|connection| session::switch_model(connection, id, model))
    }

    /// Begins a session with the first `records` of another, and with its title, model and folder.
    ///
    /// # Errors
    ///
    /// There is no such session or it has fewer records, there is one of the new id, or the
    /// database cannot be written.
    pub fn fork(self, from: &str, records: u64, id: &str, at_ms: u64) -> Result<(), StoreError> {
        session::check_id(id)?;
        self.write(|connection| fork::fork(connection, from, records, id, at_ms))
    }

    /// Removes a session with its approvals, and whatever no other session has. What forks have of
    /// it stays with them.
    ///
    /// # Errors
    ///
    /// There is no such session, or the database cannot be written. In the latter case the session
    /// may be gone already, and the next removal takes what is left.
    pub fn remove(self, id: &str) -> Result<(), StoreError> {
        self.write(|connection| remove::detach(connection, session::row(connection, id)?.key))?;
        self.sweep()
    }

    /// Removes the sessions that were last used before a moment, and of the others those that were
    /// used longest ago until `keep_max` are left. Returns how many went.
    ///
    /// # Errors
    ///
    /// As with [`remove`](Self::remove).
    pub fn prune(self, before_ms: u64, keep_max: usize) -> Result<usize, StoreError> {
        let removed = self.write(|connection| {
            let keys = list::outdated(connection, before_ms, keep_max)?;
            keys.iter().try_for_each(|key| remove::detach(connection, *key))?;
            Ok(keys.len())
        })?;
        self.sweep()?;
        Ok(removed)
    }

    /// Removes what belongs to no session any more, in many short commits, so that other writers
    /// get their turn.
    fn sweep(self) -> Result<(), StoreError> {
        if !self.write(|connection| Ok(remove::sweep_some(connection)?))? {
            return Ok(());
        }
        while self.write(|connection| Ok(remove::sweep_some(connection)?))? {}
        let mut erasing = Erasing::Begin;
        while self.write(|connection| Ok(remove::erase_some(connection, erasing)?))? {
            erasing = Erasing::GoOn;
        }
        self.store.with(|connection| {
            database::forget_log_of_writes(connection);
            Ok(())
        })
    }

    fn write<T>(
        self,
        work: impl FnOnce(&Connection) -> Result<T, Refusal>,
    ) -> Result<T, StoreError> {
        self.store.write(work)
    }

    fn read_only<T>(
        self,
        work: impl FnOnce(&Connection) -> Result<T, Refusal>,
    ) -> Result<T, StoreError> {
        self.store.read(work)
    }
}
