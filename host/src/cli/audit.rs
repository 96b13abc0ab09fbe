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
    args::{AuditCommand, AuditShowArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
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
pub(super) fn run_audit_command(
    flags: &ConfigFlags,
    command: &AuditCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let store = setup::open_store(&settings)?;
    match command {
        AuditCommand::Show(args) => show_records(&store, args, out),
        AuditCommand::Verify { head, output } => {
            verify_audit(&store, head.as_deref(), output.output, out)
        }
        AuditCommand::Prune { before, yes } => prune_records(&store, before, *yes, out),
    }
}

fn show_records(
    store: &HostStore,
    args: &AuditShowArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let mut entries = Vec::new();
    for entry in store.audit().read_records(filter_from_args(args)?) {
        entries.push(entry?);
    }
    // A limit selects the newest records, so they come first. Print them in chronological order.
    for entry in entries.iter().rev() {
        match args.output.output {
            OutputFormat::Text => print_entry(entry, out),
            OutputFormat::Json => out.print_json_line(&entry_json(entry)),
        }
    }
    if entries.is_empty() && args.output.output == OutputFormat::Text {
        out.print_note("No record matches.");
    }
    Ok(ExitStatus::Done)
}

fn filter_from_args(args: &AuditShowArgs) -> Result<AuditFilter, CommandFailure> {
    let moment = |text: &Option<String>| text.as_deref().map(parse_time).transpose();
    Ok(AuditFilter {
        plugin: args.plugin.clone(),
        tool: args.tool.clone(),
        outcome: args.outcome.clone(),
        decision: args.decision.as_deref().map(parse_decision).transpose()?,
        kind: args.kind.as_deref().map(parse_kind).transpose()?,
        session: args.session.clone(),
        since_ms: moment(&args.since)?,
        until_ms: moment(&args.until)?,
        limit: args.number,
        newest_first: true,
    })
}

fn parse_kind(word: &str) -> Result<AuditKind, CommandFailure> {
    parse_choice(word, "kind", KINDS.map(|kind| (kind.as_str(), kind)))
}

fn parse_decision(word: &str) -> Result<Decision, CommandFailure> {
    parse_choice(word, "decision", DECISIONS.map(|decision| (decision.as_str(), decision)))
}

fn parse_choice<T: Copy, const N: usize>(
    word: &str,
    what: &str,
    known: [(&'static str, T); N],
) -> Result<T, CommandFailure> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = known.map(|(name, _)| name).join(", ");
        let message = format!("{:?} is not a {what} of a record", text::escape_excerpt(word, 40));
        CommandFailure::new(ExitStatus::Usage, message).with_hint(format!("write one of {names}"))
    })
}

/// Parses a time such as `2026-01-31T12:00:00Z`, or an age such as `90m` or `12h`.
fn parse_time(written: &str) -> Result<u64, CommandFailure> {
    if let Ok(TimeSpan(ago)) = written.parse() {
        return Ok(now_ms().saturating_sub(to_millis(ago)));
    }
    let at: Result<Timestamp, _> = written.parse();
    at.ok().and_then(|at| u64::try_from(at.as_millisecond()).ok()).ok_or_else(|| {
        let message = format!("{:?} is not a time", text::escape_excerpt(written, 40));
        let hint = "use 2026-01-31T12:00:00Z or an age such as 90m or 12h";
        CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
    })
}

fn to_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn print_entry(entry: &AuditEntry, out: &CliOutput) {
    let Some(record) = &entry.record else {
        out.print_line(&format!("#{} of a form that is not known here: {}", entry.seq, entry.text));
        return;
    };
    out.print_line(&text::escape_line(&record_headline(entry.seq, record)));
    for line in record_details(record) {
        out.print_line(&format!("    {}", text::escape_line(&line)));
    }
}

/// The first line of a record, such as `#12 2026-01-31T12:00:00Z call weather.get_weather completed
/// in 12 ms`.
fn record_headline(seq: u64, record: &AuditRecord) -> String {
    let mut line = format!("#{seq} {} {}", format_time(record.at_ms), record.kind.as_str());
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

fn record_details(record: &AuditRecord) -> Vec<String> {
    let words = [("grounds", &record.grounds), ("message", &record.message)];
    let words =
        words.into_iter().filter_map(|(name, text)| Some(format!("{name} {}", text.as_ref()?)));
    words.chain(record.effects.iter().map(describe_effect)).collect()
}

fn describe_effect(effect: &AuditEffect) -> String {
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

fn format_time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| format!("{at_ms} ms"), |at| at.to_string())
}

fn entry_json(entry: &AuditEntry) -> Value {
    json!({ "seq": entry.seq, "hash": entry.hash, "record": entry.record })
}

fn verify_audit(
    store: &HostStore,
    head: Option<&str>,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let found = store.audit().verify(head)?;
    match format {
        OutputFormat::Json => out.print_json(&json!({
            "whole": found.is_intact(),
            "records": found.records,
            "pruned": found.pruned,
            "head": found.head,
            "problems": found.problems.iter().map(problem_json).collect::<Value>(),
        })),
        OutputFormat::Text => {
            for problem in &found.problems {
                out.print_error(&problem.to_string());
            }
            let is = if found.is_intact() { "is whole" } else { "is not whole" };
            out.print_line(&format!(
                "The audit {is}: {} records, head {}",
                found.records, found.head
            ));
        }
    }
    Ok(if found.is_intact() { ExitStatus::Done } else { ExitStatus::Failed })
}

fn problem_json(problem: &AuditProblem) -> Value {
    json!({ "seq": problem.seq, "what": problem.what })
}

fn prune_records(
    store: &HostStore,
    before: &str,
    yes: bool,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let before_ms = parse_time(before)?;
    let question = format!("Remove every record before {}?", format_time(before_ms));
    if !yes && !setup::ask_confirmation(&question, out)? {
        return Ok(ExitStatus::Done);
    }
    let removed = store.audit().prune(before_ms)?;
    out.print_line(&format!("Removed {removed} records."));
    Ok(ExitStatus::Done)
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::new(ExitStatus::Failed, error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_or_so_long_ago() {
        assert_eq!(parse_time("2026-01-31T12:00:00Z").unwrap(), 1_769_860_800_000);
        let ago = now_ms() - parse_time("2h").unwrap();
        assert!((7_200_000..7_201_000).contains(&ago), "{ago}");
        for no in ["", "yesterday", "1969-01-01T00:00:00Z", "12"] {
            assert!(parse_time(no).is_err(), "{no}");
        }
    }

    #[test]
    fn words_that_no_record_has_are_refused() {
        assert_eq!(parse_kind("call").unwrap(), AuditKind::Call);
        assert_eq!(parse_decision("deny").unwrap(), Decision::Deny);
        let failure = parse_kind("calls").unwrap_err();
        assert!(failure.hint.unwrap().contains("decision, call, policy"));
    }
}
