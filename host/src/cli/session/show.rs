//! One session: printed for the user, or exported as a document.

use sallyport_contract::{Principal, text};
use sallyport_runtime::{history, roles::origin_text, session::find_session};
use sallyport_session::{
    JournalRecord,
    history::{KeptTexts, PastCall, PastTurn, TurnStep, export_json, export_markdown, past_turns},
};
use sallyport_store::{HostStore, StoredSession};
use serde_json::Value;

use super::{
    super::{
        args::OutputFormat,
        exit::{CommandFailure, ExitStatus},
        output::CliOutput,
    },
    args::ExportFormat,
    list::{format_utc_time, session_to_json},
};

/// Most characters of a call's arguments on its line.
const VALUE_CHARS_MAX: usize = 160;

pub(super) async fn show_session(
    store: &HostStore,
    id: &str,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let (session, records, kept_texts) = read_session(store, id).await?;
    if format == OutputFormat::Json {
        out.print_json(&session_with_records(&session, &records, &kept_texts));
        return Ok(ExitStatus::Done);
    }
    out.print_heading(&text::escape_line(&session.title));
    out.print_line(&format!(
        "{} · {} · {}",
        session.id,
        session.model,
        format_utc_time(session.updated_ms)
    ));
    if let Some(parent) = &session.parent_id {
        out.print_line(&format!("forked from {parent}"));
    }
    past_turns(&records).iter().for_each(|turn| print_turn(turn, out));
    Ok(ExitStatus::Done)
}

pub(super) async fn export_session(
    store: &HostStore,
    id: &str,
    format: ExportFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let (session, records, kept_texts) = read_session(store, id).await?;
    match format {
        ExportFormat::Markdown => {
            out.print_answer(export_markdown(&records, &kept_texts).trim_end())
        }
        ExportFormat::Json => {
            out.print_json(&session_with_records(&session, &records, &kept_texts))
        }
    }
    Ok(ExitStatus::Done)
}

async fn read_session(
    store: &HostStore,
    id: &str,
) -> Result<(StoredSession, Vec<JournalRecord>, KeptTexts), CommandFailure> {
    let session = find_session(store, &Principal::local(), id).await?;
    let records = history::read_records(store, &session).await?;
    let kept_texts = history::read_kept_results(store, &session, &records).await?;
    Ok((session, records, kept_texts))
}

fn session_with_records(
    session: &StoredSession,
    records: &[JournalRecord],
    kept_texts: &KeptTexts,
) -> Value {
    let mut object = export_json(records, kept_texts);
    object["session"] = session_to_json(session);
    object
}

fn print_turn(turn: &PastTurn, out: &CliOutput) {
    let pinned = if turn.is_pinned { " (pinned)" } else { "" };
    out.print_line("");
    let who = turn.input.origin.as_ref().map_or_else(|| "You".to_owned(), origin_text);
    out.print_heading(&format!("{}. {who}{pinned}", turn.number));
    out.print_line(&turn.input.text);
    for file in &turn.input.attachments {
        out.print_line(&format!("@ {} ({})", text::escape_line(&file.name), file.media_type));
    }
    for step in &turn.steps {
        match step {
            TurnStep::AssistantText { text } | TurnStep::Note { text } => {
                out.print_line(&format!("\n{text}"))
            }
            TurnStep::ToolCall(call) => out.print_line(&format!("· {}", format_call(call))),
        }
    }
    match turn.end.as_deref() {
        Some("answered" | "spoken") => {}
        Some(end) => out.print_line(&format!("(the turn ended: {end})")),
        None => out.print_line("(the turn was interrupted)"),
    }
}

/// Formats a call: `clock.get_time {"timezone":"UTC"} → completed`.
fn format_call(call: &PastCall) -> String {
    let arguments = call.edited.as_deref().unwrap_or(&call.arguments);
    let outcome = call.outcome.as_deref().unwrap_or("interrupted");
    let arguments = text::escape_excerpt(arguments, VALUE_CHARS_MAX);
    format!("{} {arguments} → {outcome}", text::escape_line(&call.tool))
}
