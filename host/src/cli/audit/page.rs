//! The report about the audit as one HTML page. It loads nothing and runs no script.
//!
//! The template escapes each text that it gets. Characters that a reader could not see are escaped
//! before that, and each foreign text is isolated, so that its direction does not turn the text
//! around it.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sallyport_contract::{LOCAL_USER, text};
use sallyport_store::{AuditEntry, AuditRecord};

use super::{
    report::{AuditReport, TimelinePeriod, ToolTotals},
    table::{record_details, result_text, subject_text, time_text, unreadable_text},
};
use crate::cli::output::format_count;

const STYLE: &str = include_str!("report.css");

/// What the page may load: nothing. It has its style in itself.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                              form-action 'none'";

/// Most rows of a table that grows with the records. A browser shows so many without a wait. The
/// totals count all.
const LISTED_MAX: usize = 2000;

/// Longest table that is open at first, in rows. A reader scrolls past it without effort.
const OPEN_MAX: usize = 50;

/// The name of a column of bars. They repeat numbers, so a screen reader leaves them out.
const SHARE: &str = "Share";

/// Renders the page.
pub(super) fn render_page(report: &AuditReport) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "Sallyport audit report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { "Audit report" } (summary(report)) }
                main {
                    (chain_section(report))
                    (timeline_section(&report.timeline()))
                    (tool_section(&report.tools()))
                    (denial_section(report))
                    (answer_section(report))
                    (policy_section(report))
                    (record_section(&report.entries))
                }
            }
        }
    };
    page.into_string()
}

/// A text of a plugin, a model, a server or a user.
fn foreign(text: &str) -> Markup {
    html! { bdi { (text::escape_line(text)) } }
}

fn moment(at_ms: u64) -> Markup {
    let text = time_text(at_ms);
    html! { time datetime=(text) { (text) } }
}

fn summary(report: &AuditReport) -> Markup {
    html! {
        p.faint { "Made at " (moment(report.made_at_ms)) " by Sallyport " (env!("CARGO_PKG_VERSION")) "." }
        p { (format_count(report.entries.len(), "record"))
            @for condition in &report.conditions { ", " (foreign(condition)) }
            "."
        }
        (figures(report))
    }
}

/// The numbers to read first.
fn figures(report: &AuditReport) -> Markup {
    let tools = report.tools();
    let sum = |count: fn(&ToolTotals) -> u64| tools.iter().map(|(_, totals)| count(totals)).sum();
    let figures: [(&str, u64); 5] = [
        ("Calls", sum(|totals| totals.calls)),
        ("Completed", sum(|totals| totals.completed)),
        ("Denials", report.denials().len() as u64),
        ("Answers of users", report.answers().len() as u64),
        ("Changes of the policy", report.policy_changes().count() as u64),
    ];
    html! { dl { @for (name, count) in figures { div { dt { (name) } dd { (count) } } } } }
}

/// A section with a heading, which names it for a screen reader too.
fn section(id: &str, heading: &str, content: Markup) -> Markup {
    let heading_id = format!("{id}-heading");
    html! {
        section id=(id) aria-labelledby=(heading_id) { h2 id=(heading_id) { (heading) } (content) }
    }
}

fn chain_section(report: &AuditReport) -> Markup {
    let chain = &report.verification;
    section(
        "chain",
        "The chain",
        html! {
            @if chain.is_intact() {
                p.good { "The audit is intact." }
            } @else {
                p.bad { "The audit is not intact." }
            }
            p { (chain.records) " records in all, " (chain.pruned) " removed by pruning. Head: "
                code { (foreign(&chain.head)) } }
            @if !chain.problems.is_empty() {
                ul { @for problem in &chain.problems { li { (foreign(&problem.to_string())) } } }
            }
        },
    )
}

fn timeline_section(periods: &[TimelinePeriod]) -> Markup {
    let most = periods.iter().map(|period| period.calls.max(period.denials)).max().unwrap_or(0);
    section(
        "timeline",
        "Timeline",
        html! {
            (table(&["From", "Calls", "Denials", SHARE], periods.iter().map(|period| html! {
                td data-name="From" { (moment(period.from_ms)) }
                td.number data-name="Calls" { (period.calls) }
                td.number data-name="Denials" { (period.denials) }
                td.bars aria-hidden="true" { (bar(period.calls, most, "bar")) (bar(period.denials, most, "bar denied")) }
            })))
        },
    )
}

fn tool_section(tools: &[(String, ToolTotals)]) -> Markup {
    let most = tools.iter().map(|(_, totals)| totals.calls).max().unwrap_or(0);
    let names = ["Tool", "Calls", "Completed", "Denied", "Time", SHARE];
    section(
        "tools",
        "Calls per tool",
        html! {
            (table(&names, tools.iter().map(|(tool, totals)| html! {
                td data-name="Tool" { (foreign(tool)) }
                td.number data-name="Calls" { (totals.calls) }
                td.number data-name="Completed" { (totals.completed) }
                td.number data-name="Denied" { (totals.denied) }
                td.number data-name="Time" { (totals.elapsed_ms) " ms" }
                td.bars aria-hidden="true" { (bar(totals.calls, most, "bar")) }
            })))
        },
    )
}

fn denial_section(report: &AuditReport) -> Markup {
    section(
        "denials",
        "Denials",
        html! {
            (newest(&["Time", "Call", "Denied", "Reason"], &report.denials(), |line| html! {
                (call_cells(line.record))
                td data-name="Denied" { (foreign(line.what.unwrap_or("the call"))) }
                td data-name="Reason" { (foreign(line.why.unwrap_or_default())) }
            }))
        },
    )
}

fn answer_section(report: &AuditReport) -> Markup {
    let names = ["Time", "Call", "Asked about", "Answer", "User"];
    section(
        "answers",
        "Answers of users",
        html! {
            (newest(&names, &report.answers(), |line| html! {
                (call_cells(line.record))
                td data-name="Asked about" { (foreign(line.what.unwrap_or("the call"))) }
                td data-name="Answer" { (foreign(&line.answer)) }
                td data-name="User" { (user(line.record)) }
            }))
        },
    )
}

fn policy_section(report: &AuditReport) -> Markup {
    let changes: Vec<&AuditRecord> = report.policy_changes().collect();
    section(
        "policy",
        "Changes of the policy",
        html! {
            (newest(&["Time", "Plugin", "Change", "User"], &changes, |record| html! {
                td data-name="Time" { (moment(record.at_ms)) }
                td data-name="Plugin" { (foreign(&subject_text(record))) }
                td data-name="Change" { (foreign(record.message.as_deref().unwrap_or_default())) }
                td data-name="User" { (user(record)) }
            }))
        },
    )
}

fn record_section(entries: &[AuditEntry]) -> Markup {
    let names = ["Record", "Time", "Kind", "About", "Result", "Details"];
    section(
        "records",
        "Records",
        html! {
            (newest(&names, entries, record_cells))
        },
    )
}

fn record_cells(entry: &AuditEntry) -> Markup {
    html! {
        td.number data-name="Record" { (entry.seq) }
        @if let Some(record) = &entry.record {
            td data-name="Time" { (moment(record.at_ms)) }
            td.kind data-name="Kind" { (record.kind.as_str()) }
            td data-name="About" { (foreign(&subject_text(record))) }
            td.result data-name="Result" { (foreign(&result_text(record))) }
            td data-name="Details" {
                ul { @for detail in record_details(record) { li { (foreign(&detail)) } } }
            }
        } @else {
            td colspan="5" { (foreign(&unreadable_text(entry))) }
        }
    }
}

fn call_cells(record: &AuditRecord) -> Markup {
    html! {
        td data-name="Time" { (moment(record.at_ms)) }
        td data-name="Call" { (foreign(&subject_text(record))) }
    }
}

/// The user on whose behalf a call ran, or for whom the host runs.
fn user(record: &AuditRecord) -> Markup {
    let user = record.user.as_deref().filter(|user| *user != LOCAL_USER);
    foreign(user.unwrap_or(&record.who.name))
}

/// A table of the last rows.
fn newest<T>(names: &[&str], rows: &[T], cells: impl Fn(&T) -> Markup) -> Markup {
    let left_out = rows.len().saturating_sub(LISTED_MAX);
    html! {
        @if left_out > 0 {
            p.faint { "The newest " (LISTED_MAX) ". " (left_out) " older ones are left out here." }
        }
        @let shown = table(names, rows[left_out..].iter().map(cells));
        @if rows.len() <= OPEN_MAX {
            (shown)
        } @else {
            details { summary { "Show " (rows.len() - left_out) " rows" } (shown) }
        }
    }
}

/// A table, or the word for an empty one.
fn table(names: &[&str], rows: impl Iterator<Item = Markup>) -> Markup {
    let rows: Vec<Markup> = rows.collect();
    html! {
        @if rows.is_empty() {
            p.faint { "None." }
        } @else {
            table {
                thead { tr { @for name in names { (column_heading(name)) } } }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
    }
}

fn column_heading(name: &str) -> Markup {
    html! { th scope="col" aria-hidden=[(name == SHARE).then_some("true")] { (name) } }
}

fn bar(part: u64, whole: u64, class: &str) -> Markup {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    html! { span.track { span class=(class) style=(format!("width:{percent:.1}%")) {} } }
}
