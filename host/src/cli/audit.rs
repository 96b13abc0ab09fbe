//! `sallyport audit show|verify|prune`: lists the audit's records and checks that they are
//! complete.

use std::time::Duration;

use jiff::Timestamp;
use sallyport_contract::{Decision, text};
use sallyport_policy::TimeSpan;
use sallyport_runtime::{config::ConfigFlags, gate::now_ms};
use sallyport_store::{
    AuditEffect, AuditEntry, AuditFilter, AuditKind, AuditProblem, AuditRecord, HostStore,
    StoreError,
};
use serde_json::{Value, json};

use super::{
    args::{AuditCommand, AuditShowArgs, Format},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

const KINDS: [AuditKind; 5] = [
    AuditKind::Decision,
    AuditKind::Call,
    AuditKind::Policy,
    AuditKind::Trouble,
    AuditKind::Checkpoint,
];

const DECISIONS: [Decision; 3] = [Decision::Allow, Decision::Ask, Decision::Deny];

/// Runs the command.
pub(super) fn audit(
    flags: &ConfigFlags,
    command: &AuditCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let store = compose::store(&settings)?;
    match command {
        AuditCommand::Show(args) => show(&store, args, out),
        AuditCommand::Verify { head, output } => {
            verify(&store, head.as_deref(), output.output, out)
        }
        AuditCommand::Prune { before, yes } => prune(&store, before, *yes, out),
    }
}

fn show(store: &HostStore, args: &AuditShowArgs, out: &Output) -> Result<Exit, Failure> {
    let mut entries = Vec::new();
    for entry in store.audit().read_records(filter(args)?) {
        entries.push(entry?);
    }
    // A limit selects the newest records, so they come first. Print them in chronological order.
    for entry in entries.iter().rev() {
        match args.output.output {
            Format::Text => print(entry, out),
            Format::Json => out.json_line(&entry_json(entry)),
        }
    }
    if entries.is_empty() && args.output.output == Format::Text {
        out.note("No record matches.");
    }
    Ok(Exit::Done)
}

fn filter(args: &AuditShowArgs) -> Result<AuditFilter, Failure> {
    let moment = |text: &Option<String>| text.as_deref().map(moment).transpose();
    Ok(AuditFilter {
        plugin: args.plugin.clone(),
        tool: args.tool.clone(),
        outcome: args.outcome.clone(),
        decision: args.decision.as_deref().map(decision).transpose()?,
        kind: args.kind.as_deref().map(kind).transpose()?,
        session: args.session.clone(),
        since_ms: moment(&args.since)?,
        until_ms: moment(&args.until)?,
        limit: args.number,
        newest_first: true,
    })
}

fn kind(word: &str) -> Result<AuditKind, Failure> {
    one_of(word, "kind", KINDS.map(|kind| (kind.as_str(), kind)))
}

fn decision(word: &str) -> Result<Decision, Failure> {
    one_of(word, "decision", DECISIONS.map(|decision| (decision.as_str(), decision)))
}

fn one_of<T: Copy, const N: usize>(
    word: &str,
    what: &str,
    known: [(&'static str, T); N],
) -> Result<T, Failure> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = known.map(|(name, _)| name).join(", ");
        let message = format!("{:?} is not a {what} of a record", text::escape_excerpt(word, 40));
        Failure::new(Exit::Usage, message).with_hint(format!("write one of {names}"))
    })
}

/// Parses a time such as `2026-01-31T12:00:00Z`, or an age such as `90m` or `12h`.
fn moment(written: &str) -> Result<u64, Failure> {
    if let Ok(TimeSpan(ago)) = written.parse() {
        return Ok(now_ms().saturating_sub(millis(ago)));
    }
    let at: Result<Timestamp, _> = written.parse();
    at.ok().and_then(|at| u64::try_from(at.as_millisecond()).ok()).ok_or_else(|| {
        let message = format!("{:?} is not a time", text::escape_excerpt(written, 40));
        let hint = "use 2026-01-31T12:00:00Z or an age such as 90m or 12h";
        Failure::new(Exit::Usage, message).with_hint(hint)
    })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn print(entry: &AuditEntry, out: &Output) {
    let Some(record) = &entry.record else {
        out.line(&format!("#{} of a form that is not known here: {}", entry.seq, entry.text));
        return;
    };
    out.line(&text::escape_line(&headline(entry.seq, record)));
    for line in details(record) {
        out.line(&format!("    {}", text::escape_line(&line)));
    }
}

/// The first line of a record, such as `#12 2026-01-31T12:00:00Z call weather.get_weather completed
/// in 12 ms`.
fn headline(seq: u64, record: &AuditRecord) -> String {
    let mut line = format!("#{seq} {} {}", time(record.at_ms), record.kind.as_str());
    if let (Some(plugin), Some(tool)) = (&record.plugin, &record.tool) {
        line.push_str(&format!(" {plugin}.{tool}"));
    }
    let decision = record.decision.map(Decision::as_str);
    for word in [decision, record.outcome.as_deref()].into_iter().flatten() {
        line.push_str(&format!(" {word}"));
    }
    if record.kind == AuditKind::Call {
        line.push_str(&format!(" in {} ms", record.elapsed_ms));
        // The peak is unknown if the caller stopped waiting for the call.
        if record.memory_bytes_peak > 0 {
            let mib = record.memory_bytes_peak as f64 / f64::from(1 << 20);
            line.push_str(&format!(", {mib:.1} MiB"));
        }
    }
    line
}

fn details(record: &AuditRecord) -> Vec<String> {
    let words = [("grounds", &record.grounds), ("message", &record.message)];
    let words =
        words.into_iter().filter_map(|(name, text)| Some(format!("{name} {}", text.as_ref()?)));
    words.chain(record.effects.iter().map(effect)).collect()
}

fn effect(effect: &AuditEffect) -> String {
    match effect {
        AuditEffect::Requested { what, status, sent_bytes, received_bytes } => {
            let status = status.map_or("no answer".to_owned(), |status| status.to_string());
            format!("{what} → {status}, {sent_bytes} bytes out, {received_bytes} in")
        }
        AuditEffect::Changed { path } => format!("changed {path}"),
        AuditEffect::SecretUsed { name, to: Some(to) } => format!("sent the secret {name} to {to}"),
        AuditEffect::SecretUsed { name, to: None } => format!("read the secret {name}"),
        AuditEffect::Asked { what, answer } => format!("asked about {what}: {answer}"),
        AuditEffect::Used { capability, what } => format!("{capability}: {what}"),
        AuditEffect::Refused { what, why } => format!("refused: {what}: {why}"),
        AuditEffect::LeftOut { effects } => format!("{effects} more"),
    }
}

fn time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| format!("{at_ms} ms"), |at| at.to_string())
}

fn entry_json(entry: &AuditEntry) -> Value {
    json!({ "seq": entry.seq, "hash": entry.hash, "record": entry.record })
}

fn verify(
    store: &HostStore,
    head: Option<&str>,
    format: Format,
    out: &Output,
) -> Result<Exit, Failure> {
    let found = store.audit().verify(head)?;
    match format {
        Format::Json => out.json(&json!({
            "whole": found.is_intact(),
            "records": found.records,
            "pruned": found.pruned,
            "head": found.head,
            "problems": found.problems.iter().map(problem_json).collect::<Value>(),
        })),
        Format::Text => {
            for problem in &found.problems {
                out.error(&problem.to_string());
            }
            let is = if found.is_intact() { "is whole" } else { "is not whole" };
            out.line(&format!("The audit {is}: {} records, head {}", found.records, found.head));
        }
    }
    Ok(if found.is_intact() { Exit::Done } else { Exit::Failed })
}

fn problem_json(problem: &AuditProblem) -> Value {
    json!({ "seq": problem.seq, "what": problem.what })
}

fn prune(store: &HostStore, before: &str, yes: bool, out: &Output) -> Result<Exit, Failure> {
    let before_ms = moment(before)?;
    let question = format!("Remove every record before {}?", time(before_ms));
    if !yes && !compose::confirms(&question, out)? {
        return Ok(Exit::Done);
    }
    let removed = store.audit().prune(before_ms)?;
    out.line(&format!("Removed {removed} records."));
    Ok(Exit::Done)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::new(Exit::Failed, error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_or_so_long_ago() {
        assert_eq!(moment("2026-01-31T12:00:00Z").unwrap(), 1_769_860_800_000);
        let ago = now_ms() - moment("2h").unwrap();
        assert!((7_200_000..7_201_000).contains(&ago), "{ago}");
        for no in ["", "yesterday", "1969-01-01T00:00:00Z", "12"] {
            assert!(moment(no).is_err(), "{no}");
        }
    }

    #[test]
    fn words_that_no_record_has_are_refused() {
        assert_eq!(kind("call").unwrap(), AuditKind::Call);
        assert_eq!(decision("deny").unwrap(), Decision::Deny);
        let failure = kind("calls").unwrap_err();
        assert!(failure.hint.unwrap().contains("decision, call, policy"));
    }
}
