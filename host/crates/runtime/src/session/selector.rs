//! Selects the session of a command: a new one, a resumed one, or one that is not stored.
//!
//! `chat` and `run` show a session differently, but share this selection, the history and the
//! journal.

use std::path::PathBuf;

use sallyport_contract::Principal;
use sallyport_session::{Journal, MemoryJournal, RestoredSession, restore_session};
use sallyport_store::{HostStore, StoredSession};

use super::{SessionError, claim::SessionClaimGuard};
use crate::{
    config::SessionRetention,
    history::{self, SessionOrigin, StoreJournal, Supersession},
    session_id::new_session_id,
};

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSelector {
    /// A new session that is stored, and that begins in the current folder.
    New,
    /// A new session that is stored, and that begins in a folder of the front end's.
    NewIn(String),
    /// A new session that is not stored.
    Ephemeral,
    /// The user's last session used in this folder, or else in any.
    Latest,
    /// The user's session whose id begins with this text.
    Named(String),
}

/// A session that is ready to begin or resume.
pub struct OpenedSession {
    /// The user whose session it is.
    pub user: String,
    /// The permanent id. Approvals for this session apply again when it is resumed.
    pub session_id: String,
    /// Records the session.
    pub journal: Box<dyn Journal>,
    /// The earlier turns.
    pub past: RestoredSession,
    /// Whether the session is stored.
    pub is_stored: bool,
    /// Tells whether another process continues the session.
    pub supersession: Supersession,
    /// Keeps other programs from resuming the session. A new one is known to nobody.
    pub(super) claim: Option<SessionClaimGuard>,
}

/// Opens the selected session of a user and reads its history. The store is that of the host,
/// [`Host::store`](crate::Host::store).
///
/// # Errors
///
/// The user has no such session, the id is ambiguous, another program has the session open, or the
/// store cannot be used.
pub async fn open_session(
    store: &HostStore,
    limits: SessionRetention,
    principal: &Principal,
    selector: &SessionSelector,
) -> Result<OpenedSession, SessionError> {
    let user = &principal.user;
    match selector {
        SessionSelector::Ephemeral => Ok(OpenedSession {
            user: user.clone(),
            session_id: new_session_id(),
            journal: Box::new(MemoryJournal::default()),
            past: RestoredSession::default(),
            is_stored: false,
            supersession: Supersession::never(),
            claim: None,
        }),
        SessionSelector::New => Ok(begin_session(store, limits, user, current_folder())),
        SessionSelector::NewIn(folder) => {
            Ok(begin_session(store, limits, user, Some(folder.clone())))
        }
        SessionSelector::Latest => {
            resume_session(store, latest_session(store, user).await?, limits).await
        }
        SessionSelector::Named(prefix) => {
            resume_session(store, find_session(store, principal, prefix).await?, limits).await
        }
    }
}

/// Finds a session of a user by the start of its id.
///
/// # Errors
///
/// No session or several sessions match, or the store cannot be read.
pub async fn find_session(
    store: &HostStore,
    principal: &Principal,
    prefix: &str,
) -> Result<StoredSession, SessionError> {
    Ok(store.sessions.find_by_prefix(&principal.user, prefix).await?)
}

async fn latest_session(store: &HostStore, user: &str) -> Result<StoredSession, SessionError> {
    let sessions = &store.sessions;
    let here = match current_folder() {
        Some(folder) => sessions.latest_session(user, Some(&folder)).await?,
        None => None,
    };
    let latest = if here.is_some() { here } else { sessions.latest_session(user, None).await? };
    latest.ok_or(SessionError::NothingToContinue)
}

/// Returns the current folder, as sessions store it.
pub fn current_folder() -> Option<String> {
    let folder: PathBuf = std::env::current_dir().ok()?;
    Some(folder.to_str()?.to_owned())
}

fn new_opened_session(user: &str, session_id: String, journal: StoreJournal) -> OpenedSession {
    let (user, past) = (user.to_owned(), RestoredSession::default());
    let (supersession, journal) = (journal.supersession(), Box::new(journal));
    OpenedSession { user, session_id, journal, past, is_stored: true, supersession, claim: None }
}

fn begin_session(
    store: &HostStore,
    limits: SessionRetention,
    user: &str,
    folder: Option<String>,
) -> OpenedSession {
    let id = new_session_id();
    let origin = SessionOrigin { user: user.to_owned(), id: id.clone(), folder };
    let journal = StoreJournal::begin_session(store.clone(), origin, limits);
    new_opened_session(user, id, journal)
}

async fn resume_session(
    store: &HostStore,
    session: StoredSession,
    limits: SessionRetention,
) -> Result<OpenedSession, SessionError> {
    let (user, id) = (&session.user, &session.id);
    let claim = Some(SessionClaimGuard::claim(store, user, id).await?);
    // The program that had it open until now may have added records.
    let session = store.sessions.get(user, id).await?;
    let past = restore_session(history::read_records(store, &session).await?);
    let journal = StoreJournal::resume_session(store.clone(), &session, limits);
    let opened = new_opened_session(&session.user, session.id, journal);
    Ok(OpenedSession { past, claim, ..opened })
}
