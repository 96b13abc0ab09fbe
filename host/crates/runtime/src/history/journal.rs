//! The session journal that writes to the store.

use sallyport_contract::BoxFuture;
use sallyport_session::{
    Journal, JournalError, JournalRecord, ResultLookup, history, results::KEPT_BYTES_MAX,
};
use sallyport_store::{
    HostStore, KeptResultLookup, NewKeptResult, NewRecord, NewSession, StoreError, StoredRecord,
    StoredSession, kept_results::RESULT_BYTES_MAX,
};
use serde_json::Value;
use tokio::{sync::watch, task};

use super::{prune_sessions, read_records, record_usage};
use crate::{clock::now_ms, config::SessionRetention};

/// How often an append is tried whose connection is lost before it is confirmed.
const APPENDS_MAX: usize = 2;

/// Maximum length of the model name in a session's row, in bytes. The name is for lists; the
/// records keep it whole.
const MODEL_BYTES_MAX: usize = 200;

// The session cuts a result to what the store accepts.
const _: () = assert!(KEPT_BYTES_MAX <= RESULT_BYTES_MAX);

/// The origin of a session: the data that its row needs in addition to its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOrigin {
    /// The user whose session it is.
    pub user: String,
    /// The session's id.
    pub id: String,
    /// The folder in which the session begins.
    pub folder: Option<String>,
}

/// Tells whether another process has continued the session, so that this one cannot write to it any
/// more. Nobody would see what it does from then on.
#[derive(Debug, Clone)]
pub struct Supersession(watch::Receiver<bool>);

impl Supersession {
    /// That of a session that no other process can continue.
    pub fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Waits until a record could not be written because of another process.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|is_superseded| *is_superseded).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Writes one session to the store.
#[derive(Debug)]
pub struct StoreJournal {
    store: HostStore,
    user: String,
    id: String,
    /// The data for a row that is not created yet.
    origin: Option<SessionOrigin>,
    /// The number of records.
    count: u64,
    /// An append that may be stored: the connection was lost before it was confirmed.
    unconfirmed: Vec<NewRecord>,
    /// How many of the first records of the next write are stored already.
    stored_ahead: usize,
    /// Whether the session has no title yet. It gets one from the first user input.
    is_untitled: bool,
    /// The limits, until expired sessions are removed.
    retention: Option<SessionRetention>,
    is_superseded: watch::Sender<bool>,
}

impl StoreJournal {
    /// Starts the journal of a new session. Expired sessions are removed after its first records
    /// are written, so that this session is never the oldest.
    pub fn begin_session(
        store: HostStore,
        origin: SessionOrigin,
        limits: SessionRetention,
    ) -> Self {
        Self {
            store,
            user: origin.user.clone(),
            id: origin.id.clone(),
            origin: Some(origin),
            count: 0,
            unconfirmed: Vec::new(),
            stored_ahead: 0,
            is_untitled: false,
            retention: Some(limits),
            is_superseded: watch::Sender::new(false),
        }
    }

    /// Continues the journal of a session.
    pub fn resume_session(
        store: HostStore,
        session: &StoredSession,
        limits: SessionRetention,
    ) -> Self {
        Self {
            store,
            user: session.user.clone(),
            id: session.id.clone(),
            origin: None,
            count: session.records,
            unconfirmed: Vec::new(),
            stored_ahead: 0,
            is_untitled: false,
            retention: Some(limits),
            is_superseded: watch::Sender::new(false),
        }
    }

    /// Returns what tells whether another process has continued the session.
    pub fn supersession(&self) -> Supersession {
        Supersession(self.is_superseded.subscribe())
    }

    async fn store_records(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        if let Some(origin) = &self.origin {
            create_session(&self.store, origin, records).await?;
            self.origin = None;
            self.is_untitled = history::session_title(records).is_none();
        }
        self.append_records(records).await?;
        self.update_listing(records).await;
        Ok(())
    }

    /// Appends records, except for those that an append has stored which was not confirmed.
    async fn append_records(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for _ in 0..APPENDS_MAX {
            self.find_unconfirmed().await?;
            let rest = &records[self.stored_ahead.min(records.len())..];
            let at_ms = now_ms();
            let rows = || rest.iter().map(|record| to_new_record(record, at_ms)).collect();
            let sessions = &self.store.sessions;
            let appended = match rest.is_empty() {
                true => Ok(self.count),
                false => sessions.append_records(&self.user, &self.id, self.count, rows()).await,
            };
            match appended {
                Ok(count) => {
                    (self.count, self.stored_ahead) = (count, 0);
                    return Ok(());
                }
                Err(error @ StoreError::OutcomeUnknown { .. }) => {
                    self.unconfirmed = rows();
                    outcome = Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        outcome
    }

    /// Finds out whether the last append is stored, if nobody knows. Otherwise the next one would
    /// take its records for those of another process.
    async fn find_unconfirmed(&mut self) -> Result<(), StoreError> {
        if self.unconfirmed.is_empty() {
            return Ok(());
        }
        let sessions = &self.store.sessions;
        let session = sessions.get(&self.user, &self.id).await?;
        let mut stored = Vec::new();
        while stored.len() < self.unconfirmed.len() {
            let page = sessions.read_page(&session, self.count + stored.len() as u64).await?;
            if page.is_empty() {
                break;
            }
            stored.extend(page);
        }
        let is_same = |(own, stored): (&NewRecord, &StoredRecord)| {
            (&own.kind, &own.body, own.at_ms) == (&stored.kind, &stored.body, stored.at_ms)
        };
        let own = std::mem::take(&mut self.unconfirmed);
        if stored.len() >= own.len() && own.iter().zip(&stored).all(is_same) {
            self.count += own.len() as u64;
            self.stored_ahead += own.len();
        }
        Ok(())
    }

    /// Updates the model and title that lists show. Errors are ignored: the records are already
    /// safe, and a list then shows the previous values.
    async fn update_listing(&mut self, records: &[JournalRecord]) {
        let sessions = &self.store.sessions;
        if let Some(name) = records.iter().rev().find_map(model_name) {
            let _ = sessions.switch_model(&self.user, &self.id, truncate_model_name(name)).await;
        }
        if let Some(title) = history::session_title(records).filter(|_| self.is_untitled) {
            self.is_untitled = sessions.rename(&self.user, &self.id, &title).await.is_err();
        }
    }

    /// Removes expired sessions once, in the background. If the program ends before it is done, the
    /// next start does the rest.
    fn prune_expired_once(&mut self) {
        if let Some(limits) = self.retention.take() {
            let store = self.store.clone();
            task::spawn(async move { prune_sessions(&store, limits).await });
        }
    }
}

impl Journal for StoreJournal {
    fn write_records(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let written = self.store_records(&records).await;
            if matches!(written, Err(StoreError::ConcurrentAppend { .. })) {
                self.is_superseded.send_replace(true);
            }
            written.map_err(to_journal_error)?;
            self.prune_expired_once();
            Ok(())
        })
    }

    fn read_records(&mut self) -> BoxFuture<'_, Result<Vec<JournalRecord>, JournalError>> {
        Box::pin(async move {
            if self.origin.is_some() {
                // Nothing has been written yet.
                return Ok(Vec::new());
            }
            let session = self.store.sessions.get(&self.user, &self.id).await;
            let session = session.map_err(to_journal_error)?;
            read_records(&self.store, &session).await.map_err(to_journal_error)
        })
    }

    fn keep_result(&mut self, text: String) -> BoxFuture<'_, Result<u64, JournalError>> {
        Box::pin(async move {
            let result = NewKeptResult { text, after_records: self.count };
            self.store
                .kept_results
                .keep(&self.user, &self.id, result)
                .await
                .map_err(to_journal_error)
        })
    }

    fn find_result(&mut self, number: u64) -> BoxFuture<'_, Result<ResultLookup, JournalError>> {
        Box::pin(async move {
            let found = self.store.kept_results.find(&self.user, &self.id, number).await;
            Ok(match found.map_err(to_journal_error)? {
                KeptResultLookup::Found(text) => ResultLookup::Found(text),
                KeptResultLookup::Displaced => ResultLookup::Displaced,
                KeptResultLookup::Unknown => ResultLookup::Unknown,
            })
        })
    }
}

async fn create_session(
    store: &HostStore,
    origin: &SessionOrigin,
    records: &[JournalRecord],
) -> Result<(), StoreError> {
    let model = records.iter().find_map(model_name).map(truncate_model_name).unwrap_or_default();
    let created = store.sessions.create(NewSession {
        user: origin.user.clone(),
        id: origin.id.clone(),
        title: history::session_title(records).unwrap_or_default(),
        model: model.to_owned(),
        folder: origin.folder.clone(),
        created_ms: now_ms(),
    });
    match created.await {
        // The row was created, but writing the first records failed. They are written again.
        Err(StoreError::SessionExists { .. }) => Ok(()),
        created => created,
    }
}

/// Converts a record to the store's format.
fn to_new_record(record: &JournalRecord, at_ms: u64) -> NewRecord {
    // A record consists of text, numbers and JSON, so serializing it cannot fail.
    let value = serde_json::to_value(record).unwrap_or(Value::Null);
    NewRecord {
        kind: value["kind"].as_str().unwrap_or_default().to_owned(),
        body: value.to_string(),
        search_text: record.search_text().unwrap_or_default(),
        at_ms,
        used: record_usage(record),
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

fn to_journal_error(error: StoreError) -> JournalError {
    let message = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    JournalError { message }
}
