//! The conversation that a command is about: a new one, one that goes on, or one that is not kept.
//!
//! `chat` and `run` differ in how they show a session, not in what it is. Here is what they share:
//! which session is meant, what was said in it before, and where it is kept.

use std::path::PathBuf;

use sallyport_session::{Journal, NoJournal, Restored, restore};
use sallyport_store::{Session, Store, StoreError};

use super::{
    args::SessionArgs,
    compose,
    exit::{Exit, Failure},
    output::Output,
};
use crate::{
    config::Settings,
    history::{self, Origin, StoreJournal},
};

/// Which session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    /// One that begins, and is kept.
    New,
    /// One that begins, and is not kept.
    Ephemeral,
    /// The one that was used last in this folder, or else anywhere.
    Latest,
    /// The one whose id begins like this.
    Named(String),
}

impl From<&SessionArgs> for Which {
    fn from(args: &SessionArgs) -> Self {
        match &args.session {
            Some(id) => Self::Named(id.clone()),
            None if args.r#continue => Self::Latest,
            None if args.ephemeral => Self::Ephemeral,
            None => Self::New,
        }
    }
}

/// A conversation that can begin or go on.
pub(super) struct Conversation {
    /// Names it for ever: what was agreed to for this session holds when it goes on.
    pub(super) session_id: String,
    /// Where it is kept.
    pub(super) journal: Box<dyn Journal>,
    /// What was said before.
    pub(super) past: Restored,
    /// Whether anything of it is kept.
    pub(super) is_kept: bool,
}

/// Finds the session that is meant, and reads what was said in it.
///
/// # Errors
///
/// There is no such session, several could be meant, or the store cannot be used.
pub(super) fn open(
    settings: &Settings,
    which: &Which,
    out: &Output,
) -> Result<Conversation, Failure> {
    match which {
        Which::Ephemeral => {
            Ok(Conversation { is_kept: false, ..begin(compose::session_id(), Box::new(NoJournal)) })
        }
        Which::New => {
            let origin = Origin { id: compose::session_id(), folder: folder() };
            let store = compose::store(settings)?;
            let journal = StoreJournal::begin(store, origin.clone(), settings.sessions);
            Ok(begin(origin.id, Box::new(journal)))
        }
        Which::Latest => {
            let store = compose::store(settings)?;
            let session = latest(&store)?;
            go_on(store, session, settings, out)
        }
        Which::Named(prefix) => {
            let store = compose::store(settings)?;
            let session = find(&store, prefix)?;
            go_on(store, session, settings, out)
        }
    }
}

/// Finds a session by the start of its id.
///
/// # Errors
///
/// There is none, there are several, or the store cannot be read.
pub(super) fn find(store: &Store, prefix: &str) -> Result<Session, Failure> {
    store.sessions().find(prefix).map_err(|error| match error {
        StoreError::NoSession { .. } => {
            let failure = Failure::new(Exit::Usage, error.to_string());
            failure.with_hint("`sallyport session list` shows which there are")
        }
        StoreError::SessionUnclear { .. } => Failure { exit: Exit::Usage, ..error.into() },
        error => error.into(),
    })
}

fn latest(store: &Store) -> Result<Session, Failure> {
    let sessions = store.sessions();
    let here = match folder() {
        Some(folder) => sessions.latest(Some(&folder))?,
        None => None,
    };
    let latest = if here.is_some() { here } else { sessions.latest(None)? };
    latest.ok_or_else(|| {
        let failure = Failure::new(Exit::Usage, "there is no session to go on with");
        failure.with_hint("without --continue a new one begins")
    })
}

/// The folder that the user works in, as sessions remember it.
pub(super) fn folder() -> Option<String> {
    let folder: PathBuf = std::env::current_dir().ok()?;
    Some(folder.to_str()?.to_owned())
}

fn begin(session_id: String, journal: Box<dyn Journal>) -> Conversation {
    Conversation { session_id, journal, past: Restored::default(), is_kept: true }
}

fn go_on(
    store: Store,
    session: Session,
    settings: &Settings,
    out: &Output,
) -> Result<Conversation, Failure> {
    let records = history::records(&store, &session.id)?;
    let count = records.len() as u64;
    let past = restore(records);
    tell(&past, out);
    let journal = StoreJournal::go_on(store, &session.id, count, settings.sessions);
    Ok(Conversation { session_id: session.id, journal: Box::new(journal), past, is_kept: true })
}

/// Says what the person has to know before the session goes on.
fn tell(past: &Restored, out: &Output) {
    if past.skipped > 0 {
        let count = past.skipped;
        out.warn(&format!("{count} records of this session cannot be read and are left out"));
    }
    let Some(interrupted) = &past.interrupted else { return };
    out.warn("the last turn of this session did not come to its end");
    if !interrupted.calls.is_empty() {
        let calls = interrupted.calls.join(", ");
        out.warn(&format!("nobody saw the end of {calls}: it may or may not have had its effect"));
    }
}
