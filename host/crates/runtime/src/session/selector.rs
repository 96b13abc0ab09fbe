//! Selects the session of a command: a new one, a resumed one, or one that is not stored.
//!
//! `chat` and `run` show a session differently, but share this selection, the history and the
//! journal.

use std::path::PathBuf;

use sallyport_session::{Journal, MemoryJournal, RestoredSession, restore_session};
use sallyport_store::{HostStore, StoredSession};

use super::SessionError;
use crate::{
    config::HostSettings,
    history::{self, SessionOrigin, StoreJournal},
    host::{new_session_id, open_store},
};

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSelector {
    /// A new session that is stored.
    New,
    /// A new session that is not stored.
    Ephemeral,
    /// The last session used in this folder, or else in any.
    Latest,
    /// The session whose id begins with this text.
    Named(String),
}

/// A session that is ready to begin or resume.
pub struct OpenedSession {
    /// The permanent id. Approvals for this session apply again when it is resumed.
    pub session_id: String,
    /// Records the session.
    pub journal: Box<dyn Journal>,
    /// The earlier turns.
    pub past: RestoredSession,
    /// Whether the session is stored.
    pub is_stored: bool,
}

/// Opens the selected session and reads its history.
///
/// # Errors
///
/// The session does not exist, the id is ambiguous, or the store cannot be used.
pub async fn open_session(
    settings: &HostSettings,
    selector: &SessionSelector,
) -> Result<OpenedSession, SessionError> {
    match selector {
        SessionSelector::Ephemeral => Ok(OpenedSession {
            is_stored: false,
            ..new_opened_session(new_session_id(), Box::new(MemoryJournal::default()))
        }),
        SessionSelector::New => {
            let origin = SessionOrigin { id: new_session_id(), folder: current_folder() };
            let store = open_store(settings).map_err(SessionError::NoStore)?;
            let journal = StoreJournal::begin_session(store, origin.clone(), settings.sessions);
            Ok(new_opened_session(origin.id, Box::new(journal)))
        }
        SessionSelector::Latest => {
            let store = open_store(settings).map_err(SessionError::NoStore)?;
            let session = latest_session(&store).await?;
            resume_session(store, session, settings).await
        }
        SessionSelector::Named(prefix) => {
            let store = open_store(settings).map_err(SessionError::NoStore)?;
            let session = find_session(&store, prefix).await?;
            resume_session(store, session, settings).await
        }
    }
}

/// Finds a session by the start of its id.
///
/// # Errors
///
/// No session or several sessions match, or the store cannot be read.
pub async fn find_session(store: &HostStore, prefix: &str) -> Result<StoredSession, SessionError> {
    Ok(store.sessions.find_by_prefix(prefix).await?)
}

/// Returns a session that can be resumed. Returns `None` if it was removed or cannot be read.
pub async fn find_stored_session(
    settings: &HostSettings,
    session_id: &str,
) -> Option<StoredSession> {
    open_store(settings).ok()?.sessions.get(session_id).await.ok()
}

async fn latest_session(store: &HostStore) -> Result<StoredSession, SessionError> {
    let sessions = &store.sessions;
    let here = match current_folder() {
        Some(folder) => sessions.latest_session(Some(&folder)).await?,
        None => None,
    };
    let latest = if here.is_some() { here } else { sessions.latest_session(None).await? };
    latest.ok_or(SessionError::NothingToContinue)
}

/// Returns the current folder, as sessions store it.
pub fn current_folder() -> Option<String> {
    let folder: PathBuf = std::env::current_dir().ok()?;
    Some(folder.to_str()?.to_owned())
}

fn new_opened_session(session_id: String, journal: Box<dyn Journal>) -> OpenedSession {
    OpenedSession { session_id, journal, past: RestoredSession::default(), is_stored: true }
}

async fn resume_session(
    store: HostStore,
    session: StoredSession,
    settings: &HostSettings,
) -> Result<OpenedSession, SessionError> {
    let records = history::read_records(&store, &session.id).await?;
    let count = records.len() as u64;
    let past = restore_session(records);
    let journal = StoreJournal::resume_session(store, &session.id, count, settings.sessions);
    Ok(OpenedSession { session_id: session.id, journal: Box::new(journal), past, is_stored: true })
}
