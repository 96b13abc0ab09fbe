//! Lists of sessions and of search results.

use jiff::{Timestamp, tz::TimeZone};
use sallyport_contract::text;
use sallyport_runtime::session::current_folder;
use sallyport_store::{HostStore, SessionFilter, SessionSearchMatch, StoredSession};
use serde_json::{Value, json};

use super::super::{
    args::Format,
    exit::{Exit, Failure},
    output::Output,
};

pub(super) fn list(
    store: &HostStore,
    here: bool,
    number: Option<usize>,
    format: Format,
    out: &Output,
) -> Result<Exit, Failure> {
    let folder = current_folder().filter(|_| here);
    let filter = SessionFilter { folder: folder.as_deref(), ..SessionFilter::default() };
    let mut sessions = store.sessions().list(&filter)?;
    // A program that was stopped right after its start leaves a session without records.
    sessions.retain(|session| session.records > 0);
    sessions.truncate(number.unwrap_or(usize::MAX));
    if format == Format::Json {
        out.json(&sessions.iter().map(about).collect());
        return Ok(Exit::Done);
    }
    for session in &sessions {
        out.line(&line(session));
    }
    if sessions.is_empty() {
        out.note("No sessions. Start one with `sallyport chat`.");
    }
    Ok(Exit::Done)
}

pub(super) fn search(
    store: &HostStore,
    words: &str,
    number: usize,
    format: Format,
    out: &Output,
) -> Result<Exit, Failure> {
    let hits = store.sessions().search_records(words, number)?;
    if format == Format::Json {
        out.json(&hits.iter().map(hit).collect());
        return Ok(Exit::Done);
    }
    for hit in &hits {
        let (moment, title) = (moment(hit.at_ms), text::escape_line(&hit.title));
        out.line(&format!("{}  {moment}  {title}", hit.session_id));
        out.line(&format!("    {}", text::escape_line(&snippet(hit))));
    }
    if hits.is_empty() {
        out.note("Nothing is found.");
    }
    Ok(if hits.is_empty() { Exit::Failed } else { Exit::Done })
}

/// Formats a session: `ID  2026-01-31 12:00  3 turns  gpt-5  $0.02  TITLE`.
fn line(session: &StoredSession) -> String {
    let StoredSession { id, title, model, used, .. } = session;
    let turns = if used.turns == 1 { "1 turn".into() } else { format!("{} turns", used.turns) };
    let cost = used.cost_micro_usd.map(|cost| format!("  ${:.4}", cost as f64 / 1e6));
    let (cost, title) = (cost.unwrap_or_default(), text::escape_line(title));
    let moment = moment(session.updated_ms);
    format!("{id}  {moment}  {turns:8}  {}{cost}  {title}", text::escape_line(model))
}

/// Returns the metadata of a session.
pub(super) fn about(session: &StoredSession) -> Value {
    json!({
        "id": session.id,
        "title": session.title,
        "model": session.model,
        "folder": session.folder,
        "created_ms": session.created_ms,
        "updated_ms": session.updated_ms,
        "parent_id": session.parent_id,
        "records": session.records,
        "turns": session.used.turns,
        "tokens": session.used.tokens,
        "cost_micro_usd": session.used.cost_micro_usd,
    })
}

fn hit(hit: &SessionSearchMatch) -> Value {
    json!({
        "session_id": hit.session_id,
        "title": hit.title,
        "record": hit.seq,
        "kind": hit.kind,
        "at_ms": hit.at_ms,
        "text": snippet(hit),
    })
}

/// Returns the matching text on one line.
fn snippet(hit: &SessionSearchMatch) -> String {
    let text: String = hit.snippet.iter().map(|piece| piece.text.as_str()).collect();
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Formats a time to the minute, in UTC.
pub(in super::super) fn moment(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(
        || format!("{at_ms} ms"),
        |at| at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}
