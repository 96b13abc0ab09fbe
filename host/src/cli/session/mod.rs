//! `sallyport session …`: stored sessions.

mod args;
mod list;
mod show;

use std::num::NonZeroUsize;

use sallyport_contract::{LOCAL_USER, Principal, text};
use sallyport_runtime::{
    clock::now_ms,
    config::{ConfigFlags, HostSettings},
    history,
    session::find_session,
    session_id::new_session_id,
    undo,
};
use sallyport_session::{
    JournalRecord,
    history::{fork_at, past_turns},
};
use sallyport_store::{HostStore, StoredSession, memories::MemorySelection};
use serde_json::json;

use super::{
    args::{ChatArgs, FileArgs, ModelArgs, OutputFormat, SessionArgs},
    exit::{CommandFailure, ExitStatus},
    output::{CliOutput, format_count},
    setup,
};

pub(super) use args::SessionCommand;
pub(super) use list::format_utc_time;

use args::{ConfirmArgs, StoredSessionCommand};

/// Runs a command that needs no model.
pub(super) async fn run_session_command(
    flags: &ConfigFlags,
    command: &StoredSessionCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let store = setup::open_store(&settings)?;
    match command {
        StoredSessionCommand::List { here, number, output } => {
            let number = number.map(NonZeroUsize::get);
            list::list_sessions(&store, *here, number, output.output, out).await
        }
        StoredSessionCommand::Show { id, output } => {
            show::show_session(&store, id, output.output, out).await
        }
        StoredSessionCommand::Search { words, number, output } => {
            list::search_sessions(&store, &words.join(" "), number.get(), output.output, out).await
        }
        StoredSessionCommand::Fork { id, turn, output } => {
            fork_session(&store, id, *turn, output.output, out).await
        }
        StoredSessionCommand::Export { id, format } => {
            show::export_session(&store, id, *format, out).await
        }
        StoredSessionCommand::Remove { ids, consent } => {
            remove_sessions(&store, &settings, ids, *consent, out).await
        }
        StoredSessionCommand::Prune { consent } => {
            prune_sessions(&store, &settings, *consent, out).await
        }
    }
}

/// Returns the flags of `chat` that resume a session.
pub(super) fn resume_args(id: &str, model: &ModelArgs, files: &FileArgs) -> ChatArgs {
    let session = SessionArgs { session: Some(id.to_owned()), ..SessionArgs::default() };
    ChatArgs { model: model.clone(), files: files.clone(), session, ..ChatArgs::default() }
}

async fn fork_session(
    store: &HostStore,
    id: &str,
    turn: Option<usize>,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let session = find_session(store, &Principal::local(), id).await?;
    let records = history::read_records(store, &session).await?;
    let count = match turn {
        None => records.len(),
        Some(turn) => shared_record_count(&records, turn)?,
    };
    let fork = new_session_id();
    store.sessions.fork(LOCAL_USER, &session.id, count as u64, &fork, now_ms()).await?;
    match format {
        OutputFormat::Json => out.print_json(&json!({ "id": fork, "parent_id": session.id })),
        OutputFormat::Text => out.print_line(&fork),
    }
    Ok(ExitStatus::Done)
}

/// Returns the number of records in the first turns of a session.
fn shared_record_count(records: &[JournalRecord], turn: usize) -> Result<usize, CommandFailure> {
    fork_at(records, turn).map(<[JournalRecord]>::len).ok_or_else(|| {
        let turns = past_turns(records).len();
        CommandFailure::new(ExitStatus::Usage, format!("the session has {turns} turns, not {turn}"))
    })
}

async fn remove_sessions(
    store: &HostStore,
    settings: &HostSettings,
    ids: &[String],
    consent: ConfirmArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let mut sessions: Vec<StoredSession> = Vec::new();
    for id in ids {
        let session = find_session(store, &Principal::local(), id).await?;
        // Two prefixes may name the same session.
        if !sessions.iter().any(|known| known.id == session.id) {
            sessions.push(session);
        }
    }
    for session in &sessions {
        if store.presence.is_open(&session.id, now_ms()).await? {
            let message = format!("another program has the session {} open", session.id);
            let failure = CommandFailure::new(ExitStatus::Failed, message);
            return Err(failure.with_hint("end it there, and remove it then"));
        }
        out.print_note(&format!("{}  {}", session.id, text::escape_line(&session.title)));
    }
    let question = format!("Delete {}?", format_sessions(sessions.len()));
    if !consent.yes && !setup::ask_confirmation(&question, out)? {
        return Ok(ExitStatus::Done);
    }
    for session in &sessions {
        store.sessions.remove(LOCAL_USER, &session.id).await?;
        store.memories.forget(LOCAL_USER, MemorySelection::Session(session.id.clone())).await?;
        undo::remove_copies(&settings.paths.undo_folder(), &session.id);
    }
    out.print_line(&format!("{} removed.", format_sessions(sessions.len())));
    Ok(ExitStatus::Done)
}

async fn prune_sessions(
    store: &HostStore,
    settings: &HostSettings,
    consent: ConfirmArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let question = "Delete every session beyond `keep` or `keep_max`?";
    if !consent.yes && !setup::ask_confirmation(question, out)? {
        return Ok(ExitStatus::Done);
    }
    let removed = history::prune_sessions(store, settings.sessions).await?;
    undo::remove_stale_copies(store, &settings.paths.undo_folder()).await;
    out.print_line(&format!("{} removed.", format_sessions(removed)));
    Ok(ExitStatus::Done)
}

fn format_sessions(sessions: usize) -> String {
    format_count(sessions, "session")
}
