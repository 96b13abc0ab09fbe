//! One session: printed for the user, or exported as a document.

use sallyport_contract::text;
use sallyport_runtime::{history, roles::origin_text, session::find_session};
use sallyport_session::{
    JournalRecord,
    history::{PastCall, PastTurn, TurnStep, export_json, export_markdown, past_turns},
};
use sallyport_store::{HostStore, StoredSession};
use serde_json::Value;

use super::{
    super::{
        args::Format,
        exit::{Exit, Failure},
        output::Output,
    },
    args::ExportFormat,
    list::{about, moment},
};

/// Most characters of a call's arguments on its line.
const VALUE_CHARS_MAX: usize = 160;

pub(super) fn show(
    store: &HostStore,
    id: &str,
    format: Format,
    out: &Output,
) -> Result<Exit, Failure> {
    let (session, records) = read(store, id)?;
    if format == Format::Json {
        out.json(&with_records(&session, &records));
        return Ok(Exit::Done);
    }
    out.heading(&text::escape_line(&session.title));
    out.line(&format!("{} · {} · {}", session.id, session.model, moment(session.updated_ms)));
    if let Some(parent) = &session.parent_id {
        out.line(&format!("forked from {parent}"));
    }
    past_turns(&records).iter().for_each(|turn| print(turn, out));
    Ok(Exit::Done)
}

pub(super) fn export(
    store: &HostStore,
    id: &str,
    format: ExportFormat,
    out: &Output,
) -> Result<Exit, Failure> {
    let (session, records) = read(store, id)?;
    match format {
        ExportFormat::Markdown => out.answer(export_markdown(&records).trim_end()),
        ExportFormat::Json => out.json(&with_records(&session, &records)),
    }
    Ok(Exit::Done)
}

fn read(store: &HostStore, id: &str) -> Result<(StoredSession, Vec<JournalRecord>), Failure> {
    let session = find_session(store, id)?;
    let records = history::read_records(store, &session.id)?;
    Ok((session, records))
}

fn with_records(session: &StoredSession, records: &[JournalRecord]) -> Value {
    let mut object = export_json(records);
    object["session"] = about(session);
    object
}

fn print(turn: &PastTurn, out: &Output) {
    let pinned = if turn.is_pinned { " (pinned)" } else { "" };
    out.line("");
    let who = turn.input.origin.as_ref().map_or_else(|| "You".to_owned(), origin_text);
    out.heading(&format!("{}. {who}{pinned}", turn.number));
    out.line(&turn.input.text);
    for file in &turn.input.attachments {
        out.line(&format!("@ {} ({})", text::escape_line(&file.name), file.media_type));
    }
    for step in &turn.steps {
        match step {
            TurnStep::Said { text } | TurnStep::Noted { text } => out.line(&format!("\n{text}")),
            TurnStep::Called(call) => out.line(&format!("· {}", called(call))),
        }
    }
    match turn.end.as_deref() {
        Some("answered" | "spoken") => {}
        Some(end) => out.line(&format!("(the turn ended: {end})")),
        None => out.line("(the turn was interrupted)"),
    }
}

/// Formats a call: `clock.get_time {"timezone":"UTC"} → completed`.
fn called(call: &PastCall) -> String {
    let arguments = call.edited.as_deref().unwrap_or(&call.arguments);
    let outcome = call.outcome.as_deref().unwrap_or("interrupted");
    let arguments = text::escape_excerpt(arguments, VALUE_CHARS_MAX);
    format!("{} {arguments} → {outcome}", text::escape_line(&call.tool))
}
