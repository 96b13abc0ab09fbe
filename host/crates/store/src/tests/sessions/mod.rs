//! Sessions: what is written is read back, and nothing else stays.

use super::*;
use crate::{
    NewRecord, NewSession, SessionFilter, SessionSearchMatch, SessionStore, StoreError,
    StoredRecord, StoredSession, StoredUsage,
};

mod damage;
mod kept_results;
mod limits;
mod lookup;
mod property;
mod removal;
mod search;
mod users;
mod writing;

/// A session that differs from others by its id alone.
fn new_session(id: &str) -> NewSession {
    let (title, model) = ("A title".to_owned(), "small".to_owned());
    NewSession {
        user: USER.to_owned(),
        id: id.to_owned(),
        title,
        model,
        folder: Some("/work".to_owned()),
        created_ms: 1000,
    }
}

/// A record whose body and words are this text.
fn new_record(text: &str) -> NewRecord {
    NewRecord {
        kind: "input".to_owned(),
        body: text.to_owned(),
        search_text: text.to_owned(),
        at_ms: 2000,
        used: StoredUsage::default(),
    }
}

impl Fixture {
    fn sessions(&self) -> &dyn SessionStore {
        &*self.store.sessions
    }

    /// Begins a session with a record for each text.
    fn begin(&self, id: &str, texts: &[&str]) {
        self.sessions().create(new_session(id)).wait().unwrap();
        self.go_on(id, texts);
    }

    /// Adds a record for each text.
    fn go_on(&self, id: &str, texts: &[&str]) {
        let records: Vec<NewRecord> = texts.iter().map(|text| new_record(text)).collect();
        let known = self.sessions().get(USER, id).wait().unwrap().records;
        let total = self.sessions().append_records(USER, id, known, records).wait().unwrap();
        assert_eq!(total, known + texts.len() as u64);
    }

    fn read(&self, id: &str) -> Vec<StoredRecord> {
        let (records, error) = self.read_all(id);
        assert!(error.is_none(), "{error:?}");
        records
    }

    /// The records up to an error, if there is one.
    fn read_all(&self, id: &str) -> (Vec<StoredRecord>, Option<StoreError>) {
        let session = self.sessions().get(USER, id).wait().unwrap();
        let mut records = Vec::new();
        loop {
            match self.sessions().read_page(&session, records.len() as u64).wait() {
                Ok(page) if page.is_empty() => return (records, None),
                Ok(page) => records.extend(page),
                Err(error) => return (records, Some(error)),
            }
        }
    }

    fn bodies(&self, id: &str) -> Vec<String> {
        self.read(id).into_iter().map(|record| record.body).collect()
    }

    /// The ids of the listed sessions.
    fn ids(&self, filter: &SessionFilter) -> Vec<String> {
        self.sessions()
            .list(filter.clone())
            .wait()
            .unwrap()
            .into_iter()
            .map(|session| session.id)
            .collect()
    }

    /// Bodies, words and left-over records, as many as there are.
    fn kept(&self) -> [u64; 3] {
        let words = if self.is_sqlite() { "words" } else { "body WHERE words IS NOT NULL" };
        ["body", words, "leftover"].map(|name| self.count(&format!("SELECT count(*) FROM {name}")))
    }
}
