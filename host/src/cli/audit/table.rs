//! Records in the words that the table and the report share.

use jiff::Timestamp;
use sallyport_contract::{Decision, LOCAL_USER, UserAnswer};
use sallyport_store::{AuditEffect, AuditEntry, AuditGrant, AuditKind, AuditRecord};
use sallyport_terminal::listing::ListRow;

use crate::cli::call_display::answer_text;

/// The names of the columns of [`entry_row`].
pub(super) const COLUMNS: [&str; 6] = ["record", "time", "kind", "about", "result", "details"];

/// The row of a record.
pub(super) fn entry_row(entry: &AuditEntry) -> ListRow {
    let number = format!("#{}", entry.seq);
    let Some(record) = &entry.record else {
        return ListRow::new([number]).with_below([unreadable_text(entry)]);
    };
    ListRow::new([
        number,
        time_text(record.at_ms),
        record.kind.as_str().to_owned(),
        subject_text(record),
        result_text(record),
        record_details(record).join(" · "),
    ])
}

/// Describes a record that this program cannot read.
pub(super) fn unreadable_text(entry: &AuditEntry) -> String {
    format!("written by a newer version: {}", entry.text)
}

/// The tool or the plugin that a record is about.
pub(in crate::cli) fn subject_text(record: &AuditRecord) -> String {
    match (&record.plugin, &record.tool) {
        (Some(plugin), Some(tool)) => format!("{plugin}.{tool}"),
        (Some(plugin), None) => plugin.clone(),
        (None, _) => String::new(),
    }
}

/// The decision or the outcome, such as `completed in 12 ms, 1.5 MiB`.
pub(in crate::cli) fn result_text(record: &AuditRecord) -> String {
    let decision = record.decision.map(Decision::as_str);
    let words = decision.into_iter().chain(record.outcome.as_deref());
    let mut text = words.collect::<Vec<_>>().join(" ");
    if record.kind == AuditKind::Call {
        text.push_str(&format!(" in {} ms", record.elapsed_ms));
        // The peak is unknown if the caller stopped waiting for the call.
        if record.memory_bytes_peak > 0 {
            let mib = record.memory_bytes_peak as f64 / f64::from(1 << 20);
            text.push_str(&format!(", {mib:.1} MiB"));
        }
    }
    text
}

/// The reason, the message and the effects of a record.
pub(in crate::cli) fn record_details(record: &AuditRecord) -> Vec<String> {
    let user = record.user.as_ref().filter(|user| *user != LOCAL_USER);
    let user = user.map(|user| format!("for {user}"));
    let words = [&record.grounds, &record.message].into_iter().flatten().cloned();
    let effects = record.effects.iter().map(effect_text);
    user.into_iter().chain(words).chain(effects).collect()
}

fn effect_text(effect: &AuditEffect) -> String {
    match effect {
        AuditEffect::Requested { what, status, sent_bytes, received_bytes } => {
            let status = status.map_or("no answer".to_owned(), |status| status.to_string());
            format!("{what} → {status}, {sent_bytes} bytes out, {received_bytes} in")
        }
        AuditEffect::Changed { path } => format!("changed {path}"),
        AuditEffect::SecretUsed { name, to: Some(to) } => format!("sent the secret {name} to {to}"),
        AuditEffect::SecretUsed { name, to: None } => format!("read the secret {name}"),
        AuditEffect::Asked { what, answer } => format!("asked about {what}: {answer}"),
        AuditEffect::GrantAnswered { what, answer, grants } => {
            format!("{what}: {}", grant_answer_text(*answer, grants))
        }
        AuditEffect::Used { capability, what } => format!("{capability}: {what}"),
        AuditEffect::Refused { what, why } => format!("refused: {what}: {why}"),
        AuditEffect::LeftOut { effects } => format!("{effects} more"),
    }
}

/// The answer of the user to a question about a grant, with the grants that they gave.
pub(super) fn grant_answer_text(answer: UserAnswer, grants: &[AuditGrant]) -> String {
    let grants: String =
        grants.iter().map(|AuditGrant { key, entry }| format!(", {key} = {entry}")).collect();
    format!("{}{grants}", answer_text(answer))
}

/// A time to the second, in UTC, such as `2026-01-31 12:00:00Z`.
pub(super) fn time_text(at_ms: u64) -> String {
    let at = i64::try_from(at_ms / 1000).ok().and_then(|at| Timestamp::from_second(at).ok());
    at.map_or_else(|| format!("{at_ms} ms"), |at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}
