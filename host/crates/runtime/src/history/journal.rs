//! The session journal that writes to the store.

use sallyport_contract::BoxFuture;
use sallyport_session::{Journal, JournalError, JournalRecord, history};
use sallyport_store::{HostStore, NewRecord, NewSession, StoreError, StoredUsage};
use serde_json::Value;
use tokio::task;

use super::{prune_sessions, record_usage};
use crate::{config::SessionRetention, gate::now_ms};

/// Maximum length of the model name in a session's row, in bytes. The name is for lists; the
/// records keep it whole.
const MODEL_BYTES_MAX: usize = 200;

/// The origin of a session: the data that its row needs in addition to its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOrigin {
    /// The session's id.
    pub id: String,
    /// The folder in which the session begins.
    pub folder: Option<String>,
}

/// Writes one session to the store. Writes run on blocking threads, so no async thread waits for
/// the disk.
#[derive(Debug)]
pub struct StoreJournal {
    writer: Option<StoreJournalWriter>,
    retention: Option<SessionRetention>,
}

#[derive(Debug, Clone)]
struct StoreJournalWriter {
    store: HostStore,
    id: String,
    /// The data for a row that is not created yet.
    origin: Option<SessionOrigin>,
    /// The number of records.
    count: u64,
    /// Whether the session has no title yet. It gets one from the first user input.
    is_untitled: bool,
}

impl StoreJournal {
    /// Starts the journal of a new session. Expired sessions are removed after its first records
    /// are written, so that this session is never the oldest.
    pub fn begin_session(
        store: HostStore,
        origin: SessionOrigin,
        limits: SessionRetention,
    ) -> Self {
        let id = origin.id.clone();
        Self::new(
            StoreJournalWriter { store, id, origin: Some(origin), count: 0, is_untitled: false },
            limits,
        )
    }

    /// Continues the journal of a session that has `count` records.
    pub fn resume_session(
        store: HostStore,
        id: &str,
        count: u64,
        limits: SessionRetention,
    ) -> Self {
        let id = id.to_owned();
        Self::new(StoreJournalWriter { store, id, origin: None, count, is_untitled: false }, limits)
    }

    fn new(writer: StoreJournalWriter, limits: SessionRetention) -> Self {
        Self { writer: Some(writer), retention: Some(limits) }
    }

    /// Removes expired sessions once, in the background. If the program ends before it is done, the
    /// next start does the rest.
    fn prune_expired_once(&mut self) {
        if let (Some(limits), Some(writer)) = (self.retention.take(), &self.writer) {
            let store = writer.store.clone();
            task::spawn_blocking(move || prune_sessions(&store, limits));
        }
    }
}

impl Journal for StoreJournal {
    fn write_records(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let Some(writer) = &self.writer else { return Err(writer_lost_error()) };
            let mut next = writer.clone();
            let written =
                task::spawn_blocking(move || next.write_records(&records).map(|()| next)).await;
            match written {
                Ok(Ok(next)) => self.writer = Some(next),
                Ok(Err(error)) => return Err(JournalError { message: error_with_hint(&error) }),
                // The records may or may not be written, so the writer cannot continue.
                Err(_) => {
                    self.writer = None;
                    return Err(writer_lost_error());
                }
            }
            self.prune_expired_once();
            Ok(())
        })
    }
}

impl StoreJournalWriter {
    fn write_records(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        if let Some(origin) = &self.origin {
            create_session(&self.store, origin, records)?;
            self.origin = None;
            self.is_untitled = history::session_title(records).is_none();
        }
        let rows: Vec<RecordRow> = records.iter().map(RecordRow::from_record).collect();
        let at_ms = now_ms();
        let rows: Vec<NewRecord<'_>> = rows.iter().map(|row| row.as_new_record(at_ms)).collect();
        self.count = self.store.sessions().append_records(&self.id, self.count, &rows)?;
        self.update_listing(records);
        Ok(())
    }

    /// Updates the model and title that lists show. Errors are ignored: the records are already
    /// safe, and a list then shows the previous values.
    fn update_listing(&mut self, records: &[JournalRecord]) {
        let sessions = self.store.sessions();
        if let Some(name) = records.iter().rev().find_map(model_name) {
            let _ = sessions.switch_model(&self.id, truncate_model_name(name));
        }
        if let Some(title) = history::session_title(records).filter(|_| self.is_untitled) {
            self.is_untitled = sessions.rename(&self.id, &title).is_err();
        }
    }
}

fn create_session(
    store: &HostStore,
    origin: &SessionOrigin,
    records: &[JournalRecord],
) -> Result<(), StoreError> {
    let title = history::session_title(records).unwrap_or_default();
    let created = store.sessions().create(&NewSession {
        id: &origin.id,
        title: &title,
        model: records.iter().find_map(model_name).map(truncate_model_name).unwrap_or_default(),
        folder: origin.folder.as_deref(),
        created_ms: now_ms(),
    });
    match created {
        // The row was created, but writing the first records failed. They are written again.
        Err(StoreError::SessionExists { .. }) => Ok(()),
        created => created,
    }
}

/// A record in the store's format.
struct RecordRow {
    kind: String,
    body: String,
    search_text: String,
    usage: StoredUsage,
}

impl RecordRow {
    fn from_record(record: &JournalRecord) -> Self {
        // A record consists of text, numbers and JSON, so serializing it cannot fail.
        let value = serde_json::to_value(record).unwrap_or(Value::Null);
        Self {
            kind: value["kind"].as_str().unwrap_or_default().to_owned(),
            body: value.to_string(),
            search_text: record.search_text().unwrap_or_default(),
            usage: record_usage(record),
        }
    }

    fn as_new_record(&self, at_ms: u64) -> NewRecord<'_> {
        let Self { kind, body, search_text, usage } = self;
        NewRecord { kind, body, search_text, at_ms, used: *usage }
    }
}

fn model_name(record: &JournalRecord) -> Option<&str> {
    match record {
        JournalRecord::Model { name } => Some(name),
        _ => None,
    }
}

fn truncate_model_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MODEL_BYTES_MAX)]
}

fn error_with_hint(error: &StoreError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

fn writer_lost_error() -> JournalError {
    JournalError { message: "the thread that wrote it broke".to_owned() }
}
