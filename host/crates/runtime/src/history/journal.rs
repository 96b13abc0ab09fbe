//! The journal that writes to the store.

use sallyport_contract::BoxFuture;
use sallyport_session::{Journal, JournalError, Record, history};
use sallyport_store::{NewRecord, NewSession, Store, StoreError, Used};
use serde_json::Value;
use tokio::task;

use super::{clear_up, used};
use crate::{config::Sessions, gate::now_ms};

/// Longest name of a model that is kept beside a session, in bytes. The name is for a list; the
/// records hold all of it.
const MODEL_BYTES_MAX: usize = 200;

/// Where a session begins: what its row needs to know beside its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The session's id.
    pub id: String,
    /// The folder in which it is begun.
    pub folder: Option<String>,
}

/// Writes one session into the store. No thread that runs futures waits for the disk.
#[derive(Debug)]
pub struct StoreJournal {
    writer: Option<Writer>,
    limits: Option<Sessions>,
}

#[derive(Debug, Clone)]
struct Writer {
    store: Store,
    id: String,
    /// What the row still has to be made of.
    origin: Option<Origin>,
    /// How many records there are.
    count: u64,
    /// Nobody has said anything yet: it began with something that was told.
    is_untitled: bool,
}

impl StoreJournal {
    /// Keeps a session that begins. After its first records, sessions that have had their time go:
    /// not before, so that this one is never the oldest.
    pub fn begin(store: Store, origin: Origin, limits: Sessions) -> Self {
        let id = origin.id.clone();
        Self::new(Writer { store, id, origin: Some(origin), count: 0, is_untitled: false }, limits)
    }

    /// Keeps what follows of a session that has `count` records.
    pub fn go_on(store: Store, id: &str, count: u64, limits: Sessions) -> Self {
        let id = id.to_owned();
        Self::new(Writer { store, id, origin: None, count, is_untitled: false }, limits)
    }

    fn new(writer: Writer, limits: Sessions) -> Self {
        Self { writer: Some(writer), limits: Some(limits) }
    }

    /// Lets old sessions go, once, in the background: nobody waits for it, and what it does not
    /// manage before the program ends is done the next time.
    fn clear_up(&mut self) {
        if let (Some(limits), Some(writer)) = (self.limits.take(), &self.writer) {
            let store = writer.store.clone();
            task::spawn_blocking(move || clear_up(&store, limits));
        }
    }
}

impl Journal for StoreJournal {
    fn write(&mut self, records: Vec<Record>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let Some(writer) = &self.writer else { return Err(lost()) };
            let mut next = writer.clone();
            let written = task::spawn_blocking(move || next.write(&records).map(|()| next)).await;
            match written {
                Ok(Ok(next)) => self.writer = Some(next),
                Ok(Err(error)) => return Err(JournalError { message: said(&error) }),
                // Whether it was written cannot be known any more.
                Err(_) => {
                    self.writer = None;
                    return Err(lost());
                }
            }
            self.clear_up();
            Ok(())
        })
    }
}

impl Writer {
    fn write(&mut self, records: &[Record]) -> Result<(), StoreError> {
        if let Some(origin) = &self.origin {
            create(&self.store, origin, records)?;
            self.origin = None;
            self.is_untitled = history::title(records).is_none();
        }
        let rows: Vec<Row> = records.iter().map(Row::of).collect();
        let at_ms = now_ms();
        let rows: Vec<NewRecord<'_>> = rows.iter().map(|row| row.borrowed(at_ms)).collect();
        self.count = self.store.sessions().append(&self.id, self.count, &rows)?;
        self.describe(records);
        Ok(())
    }

    /// Keeps what a list shows of the session up to date. The records are safe: without this a list
    /// shows what was so before.
    fn describe(&mut self, records: &[Record]) {
        let sessions = self.store.sessions();
        if let Some(name) = records.iter().rev().find_map(model) {
            let _ = sessions.switch_model(&self.id, shortened(name));
        }
        if let Some(title) = history::title(records).filter(|_| self.is_untitled) {
            self.is_untitled = sessions.rename(&self.id, &title).is_err();
        }
    }
}

fn create(store: &Store, origin: &Origin, records: &[Record]) -> Result<(), StoreError> {
    let title = history::title(records).unwrap_or_default();
    let created = store.sessions().create(&NewSession {
        id: &origin.id,
        title: &title,
        model: records.iter().find_map(model).map(shortened).unwrap_or_default(),
        folder: origin.folder.as_deref(),
        created_ms: now_ms(),
    });
    match created {
        // The first records failed after the row was made, and come again.
        Err(StoreError::SessionExists { .. }) => Ok(()),
        created => created,
    }
}

/// A record as the store takes it.
struct Row {
    kind: String,
    body: String,
    search_text: String,
    used: Used,
}

impl Row {
    fn of(record: &Record) -> Self {
        // A record consists of texts, numbers and JSON; all of that can be written.
        let value = serde_json::to_value(record).unwrap_or(Value::Null);
        Self {
            kind: value["kind"].as_str().unwrap_or_default().to_owned(),
            body: value.to_string(),
            search_text: record.searchable().unwrap_or_default(),
            used: used(record),
        }
    }

    fn borrowed(&self, at_ms: u64) -> NewRecord<'_> {
        let Self { kind, body, search_text, used } = self;
        NewRecord { kind, body, search_text, at_ms, used: *used }
    }
}

fn model(record: &Record) -> Option<&str> {
    match record {
        Record::Model { name } => Some(name),
        _ => None,
    }
}

fn shortened(name: &str) -> &str {
    &name[..name.floor_char_boundary(MODEL_BYTES_MAX)]
}

fn said(error: &StoreError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

fn lost() -> JournalError {
    JournalError { message: "the thread that wrote it broke".to_owned() }
}
