//! Lists of sessions and of search results.

use jiff::{Timestamp, tz::TimeZone};
use sallyport_contract::LOCAL_USER;
use sallyport_runtime::session::current_folder;
use sallyport_store::{HostStore, SessionFilter, SessionSearchMatch, StoredSession};
use sallyport_terminal::listing::{ListRow, bar_text};
use serde_json::{Value, json};

use super::super::{
    args::OutputFormat,
    exit::{CommandFailure, ExitStatus},
    output::{CliOutput, format_count},
};

/// Width of the bars in the list, in columns.
const BAR_COLUMNS: u32 = 10;

pub(super) async fn list_sessions(
    store: &HostStore,
    here: bool,
    number: Option<usize>,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let folder = current_folder().filter(|_| here);
    let filter = SessionFilter { folder, ..SessionFilter::of_user(LOCAL_USER) };
    let mut sessions = store.sessions.list(filter).await?;
    // A program that was stopped right after its start leaves a session without records.
    sessions.retain(|session| session.records > 0);
    sessions.truncate(number.unwrap_or(usize::MAX));
    if format == OutputFormat::Json {
        out.print_json(&sessions.iter().map(session_to_json).collect());
        return Ok(ExitStatus::Done);
    }
    let most_tokens = sessions.iter().map(|session| session.used.tokens).max().unwrap_or(0);
    let row = |session: &StoredSession| session_row(session, most_tokens);
    out.print_list(&sessions.iter().map(row).collect::<Vec<_>>());
    if sessions.is_empty() {
        out.print_note("No sessions. Start one with `sallyport chat`.");
    }
    Ok(ExitStatus::Done)
}

pub(super) async fn search_sessions(
    store: &HostStore,
    words: &str,
    number: usize,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let hits = store.sessions.search_records(LOCAL_USER, words, number).await?;
    if format == OutputFormat::Json {
        out.print_json(&hits.iter().map(hit_to_json).collect());
        return Ok(ExitStatus::Done);
    }
    let row = |hit: &SessionSearchMatch| {
        let cells = [&hit.session_id, &format_utc_time(hit.at_ms), &hit.title];
        ListRow::new(cells).with_below([snippet_text(hit)])
    };
    out.print_list(&hits.iter().map(row).collect::<Vec<_>>());
    if hits.is_empty() {
        out.print_note("Nothing is found.");
    }
    Ok(if hits.is_empty() { ExitStatus::Failed } else { ExitStatus::Done })
}

/// Describes a session: `ID  2026-01-31 12:00  3 turns  ##........ 1200 tokens  $0.0200  gpt-5`,
/// with the title below. The bar compares its tokens with those of the session that used the most.
fn session_row(session: &StoredSession, most_tokens: u64) -> ListRow {
    let StoredSession { id, title, model, used, .. } = session;
    let turns = format_count(used.turns, "turn");
    let cost = used.cost_micro_usd.map(|cost| format!("${:.4}", cost as f64 / 1e6));
    let moment = format_utc_time(session.updated_ms);
    let bar = bar_text(used.tokens, most_tokens, BAR_COLUMNS);
    let tokens = format!("{bar} {} tokens", used.tokens);
    // A title in the last column would have few columns left, and it is what a user looks for.
    ListRow::new([id, &moment, &turns, &tokens, &cost.unwrap_or_default(), model])
        .with_below(Some(title).filter(|title| !title.is_empty()))
}

/// Returns the metadata of a session.
pub(super) fn session_to_json(session: &StoredSession) -> Value {
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

fn hit_to_json(hit: &SessionSearchMatch) -> Value {
    json!({
        "session_id": hit.session_id,
        "title": hit.title,
        "record": hit.seq,
        "kind": hit.kind,
        "at_ms": hit.at_ms,
        "text": snippet_text(hit),
    })
}

/// Returns the matching text on one line.
fn snippet_text(hit: &SessionSearchMatch) -> String {
    let text: String = hit.snippet.iter().map(|piece| piece.text.as_str()).collect();
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Formats a time to the minute, in UTC.
pub(in super::super) fn format_utc_time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(
        || format!("{at_ms} ms"),
        |at| at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}
