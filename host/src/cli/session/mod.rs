//! `sallyport session …`: stored sessions.

mod args;
mod list;
mod show;

use sallyport_contract::text;
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    gate::now_ms,
    history,
    host::new_session_id,
    services::USER,
    session::find_session,
};
use sallyport_session::{
    JournalRecord,
    history::{fork_at, past_turns},
};
use sallyport_store::{HostStore, StoredSession, memories::MemorySelection};
use serde_json::json;

use super::{
    args::{ChatArgs, FileArgs, Format, ModelArgs, SessionArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

pub(super) use args::SessionCommand;
pub(super) use list::moment;

use args::{KeptCommand, YesArgs};

/// Runs a command that needs no model.
pub(super) fn session(
    flags: &ConfigFlags,
    command: &KeptCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let store = compose::store(&settings)?;
    match command {
        KeptCommand::List { here, number, output } => {
            list::list(&store, *here, *number, output.output, out)
        }
        KeptCommand::Show { id, output } => show::show(&store, id, output.output, out),
        KeptCommand::Search { words, number, output } => {
            list::search(&store, &words.join(" "), *number, output.output, out)
        }
        KeptCommand::Fork { id, turn, output } => fork(&store, id, *turn, output.output, out),
        KeptCommand::Export { id, format } => show::export(&store, id, *format, out),
        KeptCommand::Remove { ids, consent } => remove(&store, ids, *consent, out),
        KeptCommand::Prune { consent } => prune(&store, &settings, *consent, out),
    }
}

/// Returns the flags of `chat` that resume a session.
pub(super) fn resumed(id: &str, model: &ModelArgs, files: &FileArgs) -> ChatArgs {
    let session = SessionArgs { session: Some(id.to_owned()), ..SessionArgs::default() };
    ChatArgs { ui: None, model: model.clone(), files: files.clone(), session }
}

fn fork(
    store: &HostStore,
    id: &str,
    turn: Option<usize>,
    format: Format,
    out: &Output,
) -> Result<Exit, Failure> {
    let session = find_session(store, id)?;
    let records = history::read_records(store, &session.id)?;
    let count = match turn {
        None => records.len(),
        Some(turn) => shared(&records, turn)?,
    };
    let fork = new_session_id();
    store.sessions().fork(&session.id, count as u64, &fork, now_ms())?;
    match format {
        Format::Json => out.json(&json!({ "id": fork, "parent_id": session.id })),
        Format::Text => out.line(&fork),
    }
    Ok(Exit::Done)
}

/// Returns the number of records in the first turns of a session.
fn shared(records: &[JournalRecord], turn: usize) -> Result<usize, Failure> {
    fork_at(records, turn).map(<[JournalRecord]>::len).ok_or_else(|| {
        let turns = past_turns(records).len();
        Failure::new(Exit::Usage, format!("the session has {turns} turns, not {turn}"))
    })
}

fn remove(
    store: &HostStore,
    ids: &[String],
    consent: YesArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let mut sessions: Vec<StoredSession> = Vec::new();
    for id in ids {
        let session = find_session(store, id)?;
        // Two prefixes may name the same session.
        if !sessions.iter().any(|known| known.id == session.id) {
            sessions.push(session);
        }
    }
    for session in &sessions {
        out.note(&format!("{}  {}", session.id, text::escape_line(&session.title)));
    }
    let question = format!("Delete {}?", counted(sessions.len()));
    if !consent.yes && !compose::confirms(&question, out)? {
        return Ok(Exit::Done);
    }
    for session in &sessions {
        store.sessions().remove(&session.id)?;
        store.memories().forget(USER, MemorySelection::Session(&session.id))?;
    }
    out.line(&format!("{} removed.", counted(sessions.len())));
    Ok(Exit::Done)
}

fn prune(
    store: &HostStore,
    settings: &HostSettings,
    consent: YesArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let question = "Delete every session beyond `keep` or `keep_max`?";
    if !consent.yes && !compose::confirms(question, out)? {
        return Ok(Exit::Done);
    }
    let removed = history::prune_sessions(store, settings.sessions)?;
    out.line(&format!("{} removed.", counted(removed)));
    Ok(Exit::Done)
}

fn counted(sessions: usize) -> String {
    match sessions {
        1 => "1 session".to_owned(),
        sessions => format!("{sessions} sessions"),
    }
}
