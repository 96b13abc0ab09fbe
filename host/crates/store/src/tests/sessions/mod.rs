//! Sessions: what is written is read back, and nothing else stays.

use super::*;
use crate::{
    NewRecord, NewSession, SessionFilter, SessionSearchMatch, SessionStore, StoreError,
    StoredRecord, StoredSession, StoredUsage,
};

mod damage;
mod limits;
mod lookup;
mod property;
mod removal;
mod search;
mod writing;

/// A session that differs from others by its id alone.
fn new_session(id: &str) -> NewSession<'_> {
    NewSession { id, title: "A title", model: "small", folder: Some("/work"), created_ms: 1000 }
}

/// A record whose body and words are this text.
fn new_record(text: &str) -> NewRecord<'_> {
    NewRecord {
        kind: "input",
        body: text,
        search_text: text,
        at_ms: 2000,
        used: StoredUsage::default(),
    }
}

impl Fixture {
    fn sessions(&self) -> SessionStore<'_> {
        self.store.sessions()
    }

    /// Begins a session with a record for each text.
    fn begin(&self, id: &str, texts: &[&str]) {
        self.sessions().create(&new_session(id)).unwrap();
        self.go_on(id, texts);
    }

    /// Adds a record for each text.
    fn go_on(&self, id: &str, texts: &[&str]) {
        let records: Vec<NewRecord<'_>> = texts.iter().map(|text| new_record(text)).collect();
        let known = self.sessions().get(id).unwrap().records;
        let total = self.sessions().append_records(id, known, &records).unwrap();
        assert_eq!(total, known + texts.len() as u64);
    }

    fn read(&self, id: &str) -> Vec<StoredRecord> {
        self.sessions().read_records(id).unwrap().map(Result::unwrap).collect()
    }

    fn bodies(&self, id: &str) -> Vec<String> {
        self.read(id).into_iter().map(|record| record.body).collect()
    }

    /// The ids of the listed sessions.
    fn ids(&self, filter: &SessionFilter<'_>) -> Vec<String> {
        self.sessions().list(filter).unwrap().into_iter().map(|session| session.id).collect()
    }

    /// Bodies, words and left-over records, as many as there are.
    fn kept(&self) -> [u64; 3] {
        ["body", "words", "leftover"]
            .map(|name| self.count(&format!("SELECT count(*) FROM {name}")))
    }
}
