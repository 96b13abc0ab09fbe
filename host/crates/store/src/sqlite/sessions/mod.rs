//! The sessions in SQLite.

mod append;
mod body;
mod fork;
mod kept_results;
mod list;
mod read;
mod remove;
mod search;
mod session;

use sallyport_contract::async_trait;

pub(super) use self::kept_results::TABLE as KEPT_RESULTS_TABLE;
use self::remove::IndexMergePhase;
use super::{SqliteStore, database};
use crate::{
    error::{StoreError, check_length},
    sessions::{
        NewRecord, NewSession, QUERY_BYTES_MAX, SessionFilter, SessionSearchMatch, SessionStore,
        StoredRecord, StoredSession, check_id, check_model, truncate_title,
    },
};

/// The tables of sessions.
///
/// A record refers to its session and its body by key, which is shorter than the id and the hash. A
/// session's key is never reused, because records of a removed session may still wait for their
/// removal; `leftover` lists those sessions.
///
/// The index has one row for each body that has words, under the body's key. Its tokens are runs of
/// letters, marks and digits, compared without case and accents. `usermerge` allows a merge of the
/// index even if it has only two segments.
pub(super) const TABLES: &str = "
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

/// What sessions got later: the user, and the highest number of a kept result. Earlier sessions
/// are those of the local user.
pub(super) const USER_COLUMNS: &str = "
    ALTER TABLE session ADD COLUMN user TEXT NOT NULL DEFAULT 'local';
    ALTER TABLE session ADD COLUMN last_kept INTEGER NOT NULL DEFAULT 0;
";

#[async_trait]
impl SessionStore for SqliteStore {
    async fn create(&self, session: NewSession) -> Result<(), StoreError> {
        session.check_fields()?;
        self.write(move |connection| session::insert_session(connection, &session)).await
    }

    async fn append_records(
        &self,
        user: &str,
        id: &str,
        expected: u64,
        records: Vec<NewRecord>,
    ) -> Result<u64, StoreError> {
        records.iter().try_for_each(NewRecord::check_lengths)?;
        let (user, id) = (user.to_owned(), id.to_owned());
        self.write(move |open| append::append_records(open, &user, &id, expected, &records)).await
    }

    async fn get(&self, user: &str, id: &str) -> Result<StoredSession, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        let found = self.read(move |connection| session::find_session_row(connection, &user, &id));
        Ok(found.await?.session)
    }

    async fn read_page(
        &self,
        session: &StoredSession,
        from: u64,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let (session, path) = (session.clone(), self.folder().join(database::FILE));
        self.read(move |connection| read::read_page(connection, &session, from, path)).await
    }

    async fn list(&self, filter: SessionFilter) -> Result<Vec<StoredSession>, StoreError> {
        self.read(move |connection| list::list_sessions(connection, &filter)).await
    }

    async fn find_by_prefix(&self, user: &str, prefix: &str) -> Result<StoredSession, StoreError> {
        let (user, prefix) = (user.to_owned(), prefix.to_owned());
        self.read(move |connection| list::find_session_by_prefix(connection, &user, &prefix)).await
    }

    async fn latest_session(
        &self,
        user: &str,
        folder: Option<&str>,
    ) -> Result<Option<StoredSession>, StoreError> {
        let (user, folder) = (user.to_owned(), folder.map(str::to_owned));
        self.read(move |connection| list::latest_session(connection, &user, folder.as_deref()))
            .await
    }

    async fn search_records(
        &self,
        user: &str,
        query: &str,
        hits_max: usize,
    ) -> Result<Vec<SessionSearchMatch>, StoreError> {
        check_length("a query", query, QUERY_BYTES_MAX)?;
        let (user, query) = (user.to_owned(), query.to_owned());
        self.read(move |connection| search::search_records(connection, &user, &query, hits_max))
            .await
    }

    async fn rename(&self, user: &str, id: &str, title: &str) -> Result<(), StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        let title = truncate_title(title);
        self.write(move |open| session::set_column(open, &user, &id, "title", &title)).await
    }

    async fn switch_model(&self, user: &str, id: &str, model: &str) -> Result<(), StoreError> {
        check_model(model)?;
        let (user, id, model) = (user.to_owned(), id.to_owned(), model.to_owned());
        self.write(move |open| session::set_column(open, &user, &id, "model", &model)).await
    }

    async fn fork(
        &self,
        user: &str,
        from: &str,
        records: u64,
        id: &str,
        at_ms: u64,
    ) -> Result<(), StoreError> {
        check_id(id)?;
        let (user, from, id) = (user.to_owned(), from.to_owned(), id.to_owned());
        self.write(move |open| {
            let parent = session::find_session_row(open, &user, &from)?;
            fork::fork_session(open, &parent, records, &id, at_ms)
        })
        .await
    }

    async fn remove(&self, user: &str, id: &str) -> Result<(), StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        self.run(move |store| {
            store.write_transaction(|connection| {
                let row = session::find_session_row(connection, &user, &id)?;
                remove::detach_session(connection, row.key)
            })?;
            remove_leftovers(store)
        })
        .await
    }

    async fn prune(&self, before_ms: u64, keep_max: usize) -> Result<usize, StoreError> {
        self.run(move |store| {
            let removed = store.write_transaction(|connection| {
                let keys = list::list_outdated_keys(connection, before_ms, keep_max)?;
                keys.iter().try_for_each(|key| remove::detach_session(connection, *key))?;
                Ok(keys.len())
            })?;
            remove_leftovers(store)?;
            Ok(removed)
        })
        .await
    }
}

/// Removes everything that belongs to no session, in many short commits, so that other writers get
/// their turn.
fn remove_leftovers(store: &SqliteStore) -> Result<(), StoreError> {
    let remove_some = || store.write_transaction(|open| Ok(remove::remove_some_leftovers(open)?));
    if !remove_some()? {
        return Ok(());
    }
    while remove_some()? {}
    let mut phase = IndexMergePhase::Begin;
    while store.write_transaction(|open| Ok(remove::merge_index_step(open, phase)?))? {
        phase = IndexMergePhase::Continue;
    }
    store.with_connection(|connection| {
        database::truncate_wal(connection);
        Ok(())
    })
}
