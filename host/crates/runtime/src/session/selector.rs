//! The conversation that a command is about: a new one, one that goes on, or one that is not kept.
//!
//! `chat` and `run` differ in how they show a session, not in what it is. Here is what they share:
//! which session is meant, what was said in it before, and where it is kept.

use std::path::PathBuf;

use sallyport_session::{Journal, NoJournal, Restored, restore};
use sallyport_store::{Session, Store};

use super::SessionError;
use crate::{
    config::Settings,
    history::{self, Origin, StoreJournal},
    host::{new_session_id, open_store},
};

/// Which session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSelector {
    /// One that begins, and is kept.
    New,
    /// One that begins, and is not kept.
    Ephemeral,
    /// The one that was used last in this folder, or else anywhere.
    Latest,
    /// The one whose id begins like this.
    Named(String),
}

/// A conversation that can begin or go on.
pub struct OpenedSession {
    /// Names it for ever: what was agreed to for this session holds when it goes on.
    pub session_id: String,
    /// Where it is kept.
    pub journal: Box<dyn Journal>,
    /// What was said before.
    pub past: Restored,
    /// Whether anything of it is kept.
    pub is_kept: bool,
}

/// Finds the session that is meant, and reads what was said in it.
///
/// # Errors
///
/// There is no such session, several could be meant, or the store cannot be used.
pub fn open(settings: &Settings, which: &SessionSelector) -> Result<OpenedSession, SessionError> {
    match which {
        SessionSelector::Ephemeral => {
            Ok(OpenedSession { is_kept: false, ..begin(new_session_id(), Box::new(NoJournal)) })
        }
        SessionSelector::New => {
            let origin = Origin { id: new_session_id(), folder: folder() };
            let store = open_store(settings).map_err(SessionError::NoStore)?;
            let journal = StoreJournal::begin(store, origin.clone(), settings.sessions);
            Ok(begin(origin.id, Box::new(journal)))
        }
        SessionSelector::Latest => {
            let store = open_store(settings).map_err(SessionError::NoStore)?;
            let session = latest(&store)?;
            resume(store, session, settings)
        }
        SessionSelector::Named(prefix) => {
            let store = open_store(settings).map_err(SessionError::NoStore)?;
            let session = find(&store, prefix)?;
            resume(store, session, settings)
        }
    }
}

/// Finds a session by the start of its id.
///
/// # Errors
///
/// There is none, there are several, or the store cannot be read.
pub fn find(store: &Store, prefix: &str) -> Result<Session, SessionError> {
    Ok(store.sessions().find(prefix)?)
}

/// Finds the session that somebody could come back to; nothing when it was removed meanwhile, or
/// cannot be read.
pub fn kept(settings: &Settings, session_id: &str) -> Option<Session> {
    open_store(settings).ok()?.sessions().get(session_id).ok()
}

fn latest(store: &Store) -> Result<Session, SessionError> {
    let sessions = store.sessions();
    let here = match folder() {
        Some(folder) => sessions.latest(Some(&folder))?,
        None => None,
    };
    let latest = if here.is_some() { here } else { sessions.latest(None)? };
    latest.ok_or(SessionError::NothingToContinue)
}

/// The folder that the user works in, as sessions remember it.
pub fn folder() -> Option<String> {
    let folder: PathBuf = std::env::current_dir().ok()?;
    Some(folder.to_str()?.to_owned())
}

fn begin(session_id: String, journal: Box<dyn Journal>) -> OpenedSession {
    OpenedSession { session_id, journal, past: Restored::default(), is_kept: true }
}

fn resume(
    store: Store,
    session: Session,
    settings: &Settings,
) -> Result<OpenedSession, SessionError> {
    let records = history::records(&store, &session.id)?;
    let count = records.len() as u64;
    let past = restore(records);
    let journal = StoreJournal::go_on(store, &session.id, count, settings.sessions);
    Ok(OpenedSession { session_id: session.id, journal: Box::new(journal), past, is_kept: true })
}
