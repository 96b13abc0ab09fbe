//! Tests of sessions that are written to a store and read back.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt as _;
use sallyport_contract::async_trait;
use sallyport_model::{AssistantMessage, TokenCost, TokenUsage};
use sallyport_session::{Journal, JournalRecord, restore_session};
use sallyport_store::{
    HostStore, NewRecord, NewSession, SessionFilter, SessionSearchMatch, SessionStore, StoreError,
    StoredRecord, StoredSession,
};
use tempfile::TempDir;

use super::*;
use crate::config::{
    SessionRetention,
    values::{CountLimit, RetentionTime},
};

const LIMITS: SessionRetention = SessionRetention {
    keep: RetentionTime(Some(Duration::from_secs(3600))),
    keep_max: CountLimit(10),
};

fn input(text: &str) -> JournalRecord {
    JournalRecord::Input { message: text.into() }
}

fn answer(text: &str) -> JournalRecord {
    let message = AssistantMessage { text: text.to_owned(), ..AssistantMessage::default() };
    let usage = TokenUsage { input_tokens: 7, output_tokens: 2, ..TokenUsage::default() };
    JournalRecord::Answer { message, usage, cost: Some(TokenCost { micro_usd: 11 }) }
}

fn model(name: &str) -> JournalRecord {
    JournalRecord::Model { name: name.to_owned() }
}

fn store() -> (TempDir, HostStore) {
    let folder = TempDir::new().unwrap();
    let store = HostStore::open(&folder.path().join("state")).unwrap();
    (folder, store)
}

const USER: &str = "ann";

async fn read_session(store: &HostStore, id: &str) -> Vec<JournalRecord> {
    let session = store.sessions.get(USER, id).await.unwrap();
    read_records(store, &session).await.unwrap()
}

async fn resume(store: &HostStore, id: &str, limits: SessionRetention) -> StoreJournal {
    let session = store.sessions.get(USER, id).await.unwrap();
    StoreJournal::resume_session(store.clone(), &session, limits)
}

fn begin(store: &HostStore, id: &str) -> StoreJournal {
    let (user, folder) = (USER.to_owned(), Some("/work".to_owned()));
    let origin = SessionOrigin { user, id: id.to_owned(), folder };
    StoreJournal::begin_session(store.clone(), origin, LIMITS)
}

#[tokio::test]
async fn what_is_written_is_read_again_and_counted() {
    let (_folder, store) = store();
    let mut journal = begin(&store, "one");
    assert!(store.sessions.get(USER, "one").await.is_err(), "nothing was said, so nothing is kept");
    let first = vec![model("gpt"), input("how high is it?\nreally")];
    journal.write_records(first.clone()).await.unwrap();
    journal.write_records(vec![answer("8848 m"), model("x".repeat(300).as_str())]).await.unwrap();
    let session = store.sessions.get(USER, "one").await.unwrap();
    assert_eq!(
        (session.title.as_str(), session.folder.as_deref()),
        ("how high is it?", Some("/work"))
    );
    assert_eq!((session.model.len(), session.records), (200, 4));
    assert_eq!(session.used, StoredUsage { turns: 1, tokens: 9, cost_micro_usd: Some(11) });
    let read = read_session(&store, "one").await;
    assert_eq!(read[..2], first);
    assert_eq!(restore_session(read).turn_count(), 1);
    assert_eq!(store.sessions.search_records(USER, "8848", 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_that_begins_with_what_it_is_told_is_named_by_what_is_said_first() {
    let (_folder, store) = store();
    let mut journal = begin(&store, "one");
    let title = async || store.sessions.get(USER, "one").await.unwrap().title;
    journal.write_records(vec![model("gpt")]).await.unwrap();
    assert_eq!(title().await, "");
    for words in ["how high is it?", "and how wide?"] {
        journal.write_records(vec![input(words)]).await.unwrap();
        assert_eq!(title().await, "how high is it?");
    }
}

#[tokio::test]
async fn two_that_go_on_with_one_session_never_mix() {
    let (_folder, store) = store();
    begin(&store, "one").write_records(vec![input("hello")]).await.unwrap();
    let mut here = resume(&store, "one", LIMITS).await;
    let mut there = resume(&store, "one", LIMITS).await;
    there.write_records(vec![answer("from there")]).await.unwrap();
    let error = here.write_records(vec![answer("from here")]).await.unwrap_err();
    assert!(error.message.contains("another process went on"), "{error}");
    assert_eq!(read_session(&store, "one").await, [input("hello"), answer("from there")]);
}

/// Sessions whose database loses the connection in the middle of appends.
struct LostConnection {
    inner: Arc<dyn SessionStore>,
    /// Of each append to come, whether the records are stored; `None` if nothing is lost.
    losses: Mutex<Vec<Option<bool>>>,
}

#[async_trait]
impl SessionStore for LostConnection {
    async fn append_records(
        &self,
        user: &str,
        id: &str,
        expected: u64,
        records: Vec<NewRecord>,
    ) -> Result<u64, StoreError> {
        let loss = self.losses.lock().unwrap().pop().flatten();
        if loss != Some(false) {
            let count = self.inner.append_records(user, id, expected, records).await?;
            if loss.is_none() {
                return Ok(count);
            }
        }
        Err(StoreError::OutcomeUnknown { database: "x".to_owned() })
    }

    async fn create(&self, session: NewSession) -> Result<(), StoreError> {
        self.inner.create(session).await
    }

    async fn get(&self, user: &str, id: &str) -> Result<StoredSession, StoreError> {
        self.inner.get(user, id).await
    }

    async fn read_page(
        &self,
        session: &StoredSession,
        from: u64,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.inner.read_page(session, from).await
    }

    async fn list(&self, filter: SessionFilter) -> Result<Vec<StoredSession>, StoreError> {
        self.inner.list(filter).await
    }

    async fn find_by_prefix(&self, user: &str, prefix: &str) -> Result<StoredSession, StoreError> {
        self.inner.find_by_prefix(user, prefix).await
    }

    async fn latest_session(
        &self,
        user: &str,
        folder: Option<&str>,
    ) -> Result<Option<StoredSession>, StoreError> {
        self.inner.latest_session(user, folder).await
    }

    async fn search_records(
        &self,
        user: &str,
        query: &str,
        hits_max: usize,
    ) -> Result<Vec<SessionSearchMatch>, StoreError> {
        self.inner.search_records(user, query, hits_max).await
    }

    async fn rename(&self, user: &str, id: &str, title: &str) -> Result<(), StoreError> {
        self.inner.rename(user, id, title).await
    }

    async fn switch_model(&self, user: &str, id: &str, model: &str) -> Result<(), StoreError> {
        self.inner.switch_model(user, id, model).await
    }

    async fn fork(
        &self,
        user: &str,
        from: &str,
        records: u64,
        id: &str,
        at_ms: u64,
    ) -> Result<(), StoreError> {
        self.inner.fork(user, from, records, id, at_ms).await
    }

    async fn remove(&self, user: &str, id: &str) -> Result<(), StoreError> {
        self.inner.remove(user, id).await
    }

    async fn prune(&self, before_ms: u64, keep_max: usize) -> Result<usize, StoreError> {
        self.inner.prune(before_ms, keep_max).await
    }
}

#[tokio::test]
async fn an_append_that_was_not_confirmed_was_taken_for_that_of_another_process() {
    // Whether the records of each unconfirmed append are stored, and whether the write succeeds.
    let rows: [(&[bool], bool); 6] = [
        (&[true], true),
        (&[false], true),
        (&[false, true], false),
        (&[true, true], true),
        (&[false, false], false),
        (&[], true),
    ];
    for (losses, succeeds) in rows {
        let (_folder, mut store) = store();
        begin(&store, "one").write_records(vec![input("hello")]).await.unwrap();
        let losses = losses.iter().rev().map(|is_stored| Some(*is_stored)).collect();
        let inner = Arc::clone(&store.sessions);
        store.sessions = Arc::new(LostConnection { inner, losses: Mutex::new(losses) });
        let mut journal = resume(&store, "one", LIMITS).await;
        let mut supersession = journal.supersession();
        let mut unwritten = vec![answer("8848 m"), input("and how wide?")];
        let is_written = journal.write_records(unwritten.clone()).await.is_ok();
        assert_eq!(is_written, succeeds);
        if is_written {
            unwritten.clear();
        }
        unwritten.push(answer("wide"));
        journal.write_records(unwritten).await.unwrap();
        let want = [input("hello"), answer("8848 m"), input("and how wide?"), answer("wide")];
        assert_eq!(read_session(&store, "one").await, want);
        assert!(supersession.wait().now_or_never().is_none());
    }
}

#[tokio::test]
async fn a_session_that_goes_on_is_not_cleared_away_with_the_old() {
    let (_folder, store) = store();
    begin(&store, "older").write_records(vec![input("hello")]).await.unwrap();
    begin(&store, "newer").write_records(vec![input("hello")]).await.unwrap();
    // Of two sessions used in the same millisecond, the one that began later counts as newer.
    tokio::time::sleep(Duration::from_millis(2)).await;
    let one = SessionRetention { keep_max: CountLimit(1), ..LIMITS };
    let mut journal = resume(&store, "older", one).await;
    journal.write_records(vec![answer("still here")]).await.unwrap();
    let ids = async || -> Vec<String> {
        let sessions = store.sessions.list(SessionFilter::of_user(USER)).await.unwrap();
        sessions.into_iter().map(|session| session.id).collect()
    };
    while ids().await.len() > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(ids().await, ["older"]);
}
