//! `sallyport audit show|report|verify|prune`: shows the audit's records and checks that they are
//! complete.

mod args;
mod page;
mod report;
mod table;

use std::{num::NonZeroUsize, time::Duration};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use sallyport_contract::{Decision, Outcome, text};
use sallyport_policy::TimeSpan;
use sallyport_runtime::{clock::now_ms, config::ConfigFlags};
use sallyport_store::{AuditEntry, AuditFilter, AuditKind, AuditProblem, HostStore, StoreError};
use serde_json::{Value, json};

pub(super) use self::{
    args::AuditCommand,
    table::{record_details, result_text, subject_text},
};
use self::{
    args::{AuditFilterArgs, AuditShowArgs, RecordFormat},
    table::{entry_row, time_text},
};
use super::{
    args::OutputFormat,
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

/// Records that are in memory at once when all are printed.
const PAGE_RECORDS: usize = 1000;

const DECISIONS: [Decision; 3] = [Decision::Allow, Decision::Ask, Decision::Deny];

/// Runs the command.
pub(super) async fn run_audit_command(
    flags: &ConfigFlags,
    command: &AuditCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let store = setup::open_store(&settings)?;
    match command {
        AuditCommand::Show(args) => show_records(&store, args, out).await,
        AuditCommand::Report(args) => report::write_report(&store, args, out).await,
        AuditCommand::Verify { head, output } => {
            verify_audit(&store, head.as_deref(), output.output, out).await
        }
        AuditCommand::Prune { before, yes } => prune_records(&store, before, *yes, out).await,
    }
}

async fn show_records(
    store: &HostStore,
    args: &AuditShowArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let filter = filter_from_args(&args.filter)?;
    if args.output == RecordFormat::Json && filter.limit.is_none() {
        return print_all_records(store, filter, out).await;
    }
    let entries = store.audit.read_records(filter).await?;
    // A limit selects the newest records, so they come first. Print them in chronological order.
    let entries = entries.iter().rev();
    match args.output {
        RecordFormat::Json => entries.for_each(|entry| out.print_json_line(&entry_json(entry))),
        RecordFormat::Text if entries.len() == 0 => out.print_note("No record matches."),
        RecordFormat::Text => {
            out.print_table(&table::COLUMNS, &entries.map(entry_row).collect::<Vec<_>>());
        }
    }
    Ok(ExitStatus::Done)
}

/// Prints the records page by page, because a log may be larger than the memory.
async fn print_all_records(
    store: &HostStore,
    filter: AuditFilter,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let mut filter = AuditFilter { limit: Some(PAGE_RECORDS), newest_first: false, ..filter };
    loop {
        let page = store.audit.read_records(filter.clone()).await?;
        let Some(last) = page.last() else { return Ok(ExitStatus::Done) };
        filter.after_seq = Some(last.seq);
        page.iter().for_each(|entry| out.print_json_line(&entry_json(entry)));
    }
}

fn filter_from_args(args: &AuditFilterArgs) -> Result<AuditFilter, CommandFailure> {
    let moment = |text: &Option<String>| text.as_deref().map(parse_time).transpose();
    Ok(AuditFilter {
        plugin: args.plugin.clone(),
        tool: args.tool.clone(),
        outcome: args.outcome.as_deref().map(parse_outcome).transpose()?.map(str::to_owned),
        decision: args.decision.as_deref().map(parse_decision).transpose()?,
        kind: args.kind.as_deref().map(parse_kind).transpose()?,
        session: args.session.clone(),
        user: args.user.clone(),
        denied: args.denied,
        since_ms: moment(&args.since)?,
        until_ms: moment(&args.until)?,
        limit: args.number.map(NonZeroUsize::get),
        newest_first: true,
        ..AuditFilter::default()
    })
}

impl AuditFilterArgs {
    /// The conditions as the user wrote them, such as `plugin clock`.
    fn conditions(&self) -> Vec<String> {
        let named = [
            ("plugin", &self.plugin),
            ("tool", &self.tool),
            ("outcome", &self.outcome),
            ("decision", &self.decision),
            ("kind", &self.kind),
            ("session", &self.session),
            ("user", &self.user),
            ("since", &self.since),
            ("until", &self.until),
        ];
        let named = named.iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        let named = named.map(|(name, text)| format!("{name} {text}"));
        let denied = self.denied.then(|| "denied".to_owned());
        let number = self.number.map(|number| format!("the newest {number}"));
        named.chain(denied).chain(number).collect()
    }
}

fn parse_kind(word: &str) -> Result<AuditKind, CommandFailure> {
    parse_choice(word, "kind", KINDS.map(|kind| (kind.as_str(), kind)))
}

fn parse_decision(word: &str) -> Result<Decision, CommandFailure> {
    parse_choice(word, "decision", DECISIONS.map(|decision| (decision.as_str(), decision)))
}

fn parse_outcome(word: &str) -> Result<&'static str, CommandFailure> {
    parse_choice(word, "outcome", Outcome::NAMES.map(|name| (name, name)))
}

fn parse_choice<T: Copy, const N: usize>(
    word: &str,
    what: &str,
    known: [(&'static str, T); N],
) -> Result<T, CommandFailure> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = known.map(|(name, _)| name).join(", ");
        let message =
            format!("{:?} is not the {what} of any record", text::escape_excerpt(word, 40));
        CommandFailure::new(ExitStatus::Usage, message).with_hint(format!("write one of {names}"))
    })
}

/// Parses a time such as `2026-01-31T12:00:00Z`, a date, which begins at midnight UTC, or an age
/// such as `90m` or `12h`.
fn parse_time(written: &str) -> Result<u64, CommandFailure> {
    if let Ok(TimeSpan(ago)) = written.parse() {
        return Ok(now_ms().saturating_sub(to_millis(ago)));
    }
    let at: Option<Timestamp> = written.parse().ok();
    at.or_else(|| parse_midnight(written))
        .and_then(|at| u64::try_from(at.as_millisecond()).ok())
        .ok_or_else(|| {
            let message = format!("{:?} is not a time", text::escape_excerpt(written, 40));
            let hint = "use 2026-01-31T12:00:00Z, 2026-01-31, or an age such as 90m or 12h";
            CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
        })
}

/// Parses a date as its first moment in UTC.
fn parse_midnight(written: &str) -> Option<Timestamp> {
    // The parser ignores a time of day, which must not happen to what a user wrote.
    let date: Date = written.parse().ok().filter(|_| written.len() == "2026-01-31".len())?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn to_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn entry_json(entry: &AuditEntry) -> Value {
    json!({ "seq": entry.seq, "hash": entry.hash, "record": entry.record })
}

async fn verify_audit(
    store: &HostStore,
    head: Option<&str>,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let found = store.audit.verify(head).await?;
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
            let is = if found.is_intact() { "is intact" } else { "is not intact" };
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

async fn prune_records(
    store: &HostStore,
    before: &str,
    yes: bool,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let before_ms = parse_time(before)?;
    let question = format!("Remove every record before {}?", time_text(before_ms));
    if !yes && !setup::ask_confirmation(&question, out)? {
        return Ok(ExitStatus::Done);
    }
    let removed = store.audit.prune(before_ms).await?;
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
        assert_eq!(parse_time("2026-01-31").unwrap(), 1_769_817_600_000);
        let ago = now_ms() - parse_time("2h").unwrap();
        assert!((7_200_000..7_201_000).contains(&ago), "{ago}");
        for no in ["", "yesterday", "1969-01-01T00:00:00Z", "12", "2026-02-30", "2026-01-31T12:00"]
        {
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
