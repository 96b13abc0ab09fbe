//! `sallyport audit report`: sums up records for the page in `page.rs`, and writes it.

use std::{borrow::Cow, collections::BTreeMap, io, path::Path};

use sallyport_runtime::{atomic_file, clock::now_ms};
use sallyport_store::{
    AuditEffect, AuditEntry, AuditKind, AuditRecord, HostStore, audit::AuditVerification,
};

use super::{
    args::AuditReportArgs,
    filter_from_args, page,
    table::{grant_answer_text, subject_text},
};
use crate::cli::{
    call_display::answer_text,
    exit::{CommandFailure, ExitStatus},
    output::{CliOutput, format_count},
};

/// Most columns of the timeline. More do not fit a narrow screen.
const PERIODS_MAX: u64 = 48;

/// The lengths that a column of the timeline may have, in milliseconds: from a minute to a year.
const PERIODS_MS: [u64; 9] = [
    60_000,
    600_000,
    3_600_000,
    21_600_000,
    86_400_000,
    7 * 86_400_000,
    30 * 86_400_000,
    91 * 86_400_000,
    365 * 86_400_000,
];

/// What the page shows.
pub(super) struct AuditReport {
    pub(super) made_at_ms: u64,
    pub(super) verification: AuditVerification,
    /// The selected records, the oldest first.
    pub(super) entries: Vec<AuditEntry>,
    /// The conditions that the records meet, one each.
    pub(super) conditions: Vec<String>,
}

/// A column of the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TimelinePeriod {
    /// Its start, in milliseconds since 1970.
    pub(super) from_ms: u64,
    pub(super) calls: u64,
    pub(super) denials: u64,
}

/// The calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToolTotals {
    pub(super) calls: u64,
    pub(super) completed: u64,
    pub(super) denied: u64,
    pub(super) elapsed_ms: u64,
}

/// Something that was denied.
pub(super) struct DenialLine<'r> {
    pub(super) record: &'r AuditRecord,
    /// What was denied, unless it was the call itself.
    pub(super) what: Option<&'r str>,
    pub(super) why: Option<&'r str>,
}

/// Something that a user was asked about.
pub(super) struct AnswerLine<'r> {
    pub(super) record: &'r AuditRecord,
    /// What the question was about, unless it was the call itself.
    pub(super) what: Option<&'r str>,
    pub(super) answer: Cow<'r, str>,
}

pub(super) async fn write_report(
    store: &HostStore,
    args: &AuditReportArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    check_target(&args.html, args.force)?;
    let filter = filter_from_args(&args.filter)?;
    let mut entries = store.audit.read_records(filter).await?;
    entries.reverse();
    let verification = store.audit.verify(None).await?;
    let conditions = args.filter.conditions();
    let report = AuditReport { made_at_ms: now_ms(), verification, entries, conditions };
    let page = page::render_page(&report);
    let written = match args.force {
        true => atomic_file::replace_file(&args.html, page.as_bytes(), atomic_file::PRIVATE_MODE),
        false => atomic_file::create_file(&args.html, page.as_bytes()),
    };
    written.map_err(|error| write_failure(&args.html, &error))?;
    let count = format_count(report.entries.len(), "record");
    out.print_line(&format!("Wrote {count} to {}.", args.html.display()));
    if !report.verification.is_intact() {
        out.print_warning("the audit is not intact: `sallyport audit verify` shows where");
        return Ok(ExitStatus::Failed);
    }
    Ok(ExitStatus::Done)
}

/// Checks that the page may take the place of what is at the path.
fn check_target(path: &Path, is_forced: bool) -> Result<(), CommandFailure> {
    match path.symlink_metadata() {
        Ok(_) if !is_forced => Err(write_failure(path, &io::ErrorKind::AlreadyExists.into())),
        // A device or a link would be gone, because the page replaces it.
        Ok(existing) if !existing.is_file() => {
            let message = format!("{} is not a regular file", path.display());
            Err(CommandFailure::new(ExitStatus::Failed, message).with_hint("name another file"))
        }
        _ => Ok(()),
    }
}

fn write_failure(path: &Path, error: &io::Error) -> CommandFailure {
    let path = path.display();
    let (message, hint) = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            (format!("{path} already exists"), "name another file, or replace it with --force")
        }
        _ => (format!("cannot write {path}: {error}"), "choose a folder that you can write to"),
    };
    CommandFailure::new(ExitStatus::Failed, message).with_hint(hint)
}

impl AuditReport {
    pub(super) fn records(&self) -> impl Iterator<Item = &AuditRecord> {
        self.entries.iter().filter_map(|entry| entry.record.as_ref())
    }

    /// The calls and denials over time, without gaps. Empty without records.
    pub(super) fn timeline(&self) -> Vec<TimelinePeriod> {
        let times = || self.records().map(|record| record.at_ms);
        let (Some(first), Some(last)) = (times().min(), times().max()) else { return Vec::new() };
        let fits = |length: &&u64| last / **length - first / **length < PERIODS_MAX;
        let length = *PERIODS_MS.iter().find(fits).unwrap_or(&PERIODS_MS[PERIODS_MS.len() - 1]);
        // Times that were tampered with must not make a long page.
        let count = (last / length - first / length + 1).min(PERIODS_MAX);
        let period = |index| TimelinePeriod {
            from_ms: (first / length + index) * length,
            ..TimelinePeriod::default()
        };
        let mut periods: Vec<TimelinePeriod> = (0..count).map(period).collect();
        for record in self.records() {
            let index = (record.at_ms / length - first / length).min(count - 1);
            let period = &mut periods[index as usize];
            period.calls += u64::from(record.kind == AuditKind::Call);
            period.denials += u64::from(record.is_about_denial());
        }
        periods
    }

    /// The calls of each tool, by name. A denied call counts, though it never ran.
    pub(super) fn tools(&self) -> Vec<(String, ToolTotals)> {
        let mut tools: BTreeMap<String, ToolTotals> = BTreeMap::new();
        for record in self.records() {
            let is_denied = record.kind == AuditKind::Decision && record.is_about_denial();
            if record.tool.is_none() || !(is_denied || record.kind == AuditKind::Call) {
                continue;
            }
            let totals = tools.entry(subject_text(record)).or_default();
            totals.calls += 1;
            totals.completed += u64::from(record.outcome.as_deref() == Some("completed"));
            totals.denied += u64::from(is_denied);
            totals.elapsed_ms = totals.elapsed_ms.saturating_add(record.elapsed_ms);
        }
        tools.into_iter().collect()
    }

    /// What was denied: calls, and host calls of running calls.
    pub(super) fn denials(&self) -> Vec<DenialLine<'_>> {
        let mut lines = Vec::new();
        for record in self.records().filter(|record| record.is_about_denial()) {
            let refused = record.effects.iter().filter_map(|effect| match effect {
                AuditEffect::Refused { what, why } => Some((what.as_str(), why.as_str())),
                _ => None,
            });
            let before = lines.len();
            lines.extend(refused.map(|(what, why)| DenialLine {
                record,
                what: Some(what),
                why: Some(why),
            }));
            if lines.len() == before {
                lines.push(DenialLine { record, what: None, why: record.message.as_deref() });
            }
        }
        lines
    }

    /// What users were asked about, and what they answered.
    pub(super) fn answers(&self) -> Vec<AnswerLine<'_>> {
        self.records().flat_map(record_answers).collect()
    }

    /// The changes of the policy.
    pub(super) fn policy_changes(&self) -> impl Iterator<Item = &AuditRecord> {
        self.records().filter(|record| record.kind == AuditKind::Policy)
    }
}

fn record_answers(record: &AuditRecord) -> impl Iterator<Item = AnswerLine<'_>> {
    let own = record.answer.map(answer_text);
    let own = own.map(|answer| AnswerLine { record, what: None, answer: answer.into() });
    let asked = record.effects.iter().filter_map(move |effect| match effect {
        AuditEffect::Asked { what, answer } => {
            Some(AnswerLine { record, what: Some(what), answer: answer.into() })
        }
        AuditEffect::GrantAnswered { what, answer, grants } => {
            let answer = grant_answer_text(*answer, grants).into();
            Some(AnswerLine { record, what: Some(what), answer })
        }
        _ => None,
    });
    own.into_iter().chain(asked)
}

#[cfg(test)]
mod tests {
    use sallyport_contract::{Decision, UserAnswer};
    use sallyport_store::{AuditProblem, audit::HostUser};

    use super::*;

    /// Texts that a page, a terminal or a reader could take for something else.
    const HOSTILE: &str =
        "</td><script>alert(1)</script>\"'&<img src=x onerror=a>\u{1b}[2J\u{202e}gnp";

    fn record(kind: AuditKind, at_ms: u64, tool: &str) -> AuditRecord {
        let who = HostUser { name: HOSTILE.to_owned(), uid: 1 };
        AuditRecord {
            plugin: Some("clock".to_owned()),
            tool: Some(tool.to_owned()),
            ..AuditRecord::new(kind, at_ms, who)
        }
    }

    fn report(records: Vec<AuditRecord>, problems: Vec<AuditProblem>) -> AuditReport {
        let entry = |(seq, record)| AuditEntry {
            seq,
            hash: String::new(),
            text: HOSTILE.to_owned(),
            record: Some(record),
        };
        let head = "3:abc".to_owned();
        let verification = AuditVerification { records: 3, pruned: 0, head, problems };
        let entries = (1..).zip(records).map(entry).collect();
        AuditReport { made_at_ms: 0, verification, entries, conditions: Vec::new() }
    }

    fn records() -> Vec<AuditRecord> {
        let completed = |at_ms, tool| AuditRecord {
            outcome: Some("completed".to_owned()),
            elapsed_ms: 5,
            ..record(AuditKind::Call, at_ms, tool)
        };
        let refused = AuditEffect::Refused { what: HOSTILE.to_owned(), why: "why <b>".to_owned() };
        let asked = AuditEffect::Asked { what: "GET https://a".to_owned(), answer: HOSTILE.into() };
        vec![
            AuditRecord {
                decision: Some(Decision::Allow),
                answer: Some(UserAnswer::Always),
                user: Some("kim".to_owned()),
                ..record(AuditKind::Decision, 1000, "a")
            },
            AuditRecord { effects: vec![refused, asked], ..completed(2000, "a") },
            AuditRecord {
                decision: Some(Decision::Deny),
                answer: Some(UserAnswer::Refused),
                message: Some("the user said no".to_owned()),
                ..record(AuditKind::Decision, 3000, HOSTILE)
            },
            completed(3_600_000, "a"),
            AuditRecord {
                message: Some("granted <i>".to_owned()),
                ..record(AuditKind::Policy, 3_700_000, "x")
            },
        ]
    }

    #[test]
    fn totals_count_calls_denials_and_answers() {
        let report = report(records(), Vec::new());
        let totals = |calls, completed, denied, elapsed_ms| ToolTotals {
            calls,
            completed,
            denied,
            elapsed_ms,
        };
        assert_eq!(
            report.tools(),
            [
                (format!("clock.{HOSTILE}"), totals(1, 0, 1, 0)),
                ("clock.a".to_owned(), totals(2, 2, 0, 10)),
            ]
        );
        let denials = report.denials();
        let reasons: Vec<_> = denials.iter().map(|line| line.why).collect();
        assert_eq!(reasons, [Some("why <b>"), Some("the user said no")]);
        let answers = report.answers();
        let texts: Vec<_> = answers.iter().map(|line| (line.what, &*line.answer)).collect();
        let want = [(None, "yes, always"), (Some("GET https://a"), HOSTILE), (None, "no")];
        assert_eq!(texts, want);
        assert_eq!(report.policy_changes().count(), 1);
    }

    #[test]
    fn the_timeline_has_no_gap_and_is_never_long() {
        let at = |times: &[u64]| {
            let calls = times.iter().map(|at_ms| record(AuditKind::Call, *at_ms, "a"));
            report(calls.collect(), Vec::new()).timeline()
        };
        assert_eq!(at(&[]), []);
        let period = |from_ms, calls| TimelinePeriod { from_ms, calls, denials: 0 };
        assert_eq!(at(&[60_000]), [period(60_000, 1)]);
        let two_minutes = [period(60_000, 2), period(120_000, 0), period(180_000, 1)];
        assert_eq!(at(&[60_000, 61_000, 185_000]), two_minutes);
        for times in [[0, u64::MAX], [u64::MAX, 0], [0, 400 * 86_400_000]] {
            let periods = at(&times);
            assert!(periods.len() <= PERIODS_MAX as usize, "{times:?}");
            assert_eq!(periods.iter().map(|period| period.calls).sum::<u64>(), 2);
        }
    }

    #[test]
    fn no_foreign_text_gets_out_of_its_place_on_the_page() {
        let problem = AuditProblem { seq: 2, what: HOSTILE.to_owned() };
        let mut whole = report(records(), vec![problem]);
        whole.entries.push(AuditEntry { record: None, ..whole.entries[0].clone() });
        whole.conditions.push(HOSTILE.to_owned());
        let page = page::render_page(&whole);
        for no in ["<script", "<img", "<b>", "<i>", "\u{1b}", "\u{202e}", "http:", "src=", "href="]
        {
            let outside = page.replace("src=x", "").replace("http-equiv", "");
            assert!(!outside.contains(no), "{no:?} in {page}");
        }
        for word in ["not intact", "&lt;script&gt;", "\\u{202e}gnp", "kim", "yes, always", "newer"]
        {
            assert!(page.contains(word), "no {word:?} in {page}");
        }
        assert!(page::render_page(&report(Vec::new(), Vec::new())).contains("is intact"));
    }

    /// The tables of denials and of answers had no limit.
    #[test]
    fn a_page_about_a_long_audit_is_short() {
        let answered = AuditRecord {
            decision: Some(Decision::Deny),
            answer: Some(UserAnswer::Refused),
            ..record(AuditKind::Decision, 1, "a")
        };
        let changed = record(AuditKind::Policy, 1, "a");
        let page = page::render_page(&report(vec![[answered, changed]; 2500].concat(), Vec::new()));
        assert_eq!(page.matches(". 500 older ones are left out").count(), 3, "{}", &page[..2000]);
        assert_eq!(page.matches(". 3000 older ones are left out").count(), 1, "{}", &page[..2000]);
        assert!(page.contains(">2500<"), "the totals count all");
    }
}
