//! Descriptions of calls and questions, shared by all front ends at the terminal.

use std::{path::Path, time::Duration};

use sallyport_contract::{
    ApprovalRequest, ApprovalSubject, CallReport, Denial, Outcome, services::PluginNotice, text,
};

use sallyport_policy::UngrantedRequest;
use sallyport_runtime::{gate::missing_grants, registry::RegisteredPlugin};
use sallyport_terminal::card::request_lines;
use serde_json::{Value, json};

use super::output::CliOutput;

/// Most characters shown of an argument. The rest is counted.
const ARGUMENT_CHARS_MAX: usize = 500;

/// Most characters of the subject in the first line of a question.
const SUBJECT_CHARS_MAX: usize = 400;

/// Describes the end of a call, such as `completed in 12 ms`.
pub(super) fn call_end_text(report: &CallReport) -> String {
    // A call that the gate refused took no time.
    if report.elapsed.is_zero() {
        return report.outcome.as_str().to_owned();
    }
    let time = format!("{} in {:.1?}", report.outcome.as_str(), report.elapsed);
    match report.memory_bytes_peak {
        0 => time,
        bytes => format!("{time}, {:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// Describes the wait before the next request to a provider.
pub(super) fn retry_text(wait: Duration, reason: &str) -> String {
    format!("retrying in {:.1} s: {}", wait.as_secs_f64(), text::escape_line(reason))
}

/// Returns the reason why a call did not complete, for the user.
pub(super) fn failure_reason(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Completed(_) => None,
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            let panic = failure.panic.as_ref();
            let panic = panic.map(|panic| format!(" {}", text::escape_line(panic)));
            Some(failure.message.clone() + &panic.unwrap_or_default())
        }
        Outcome::Denied(denial) => Some(format!("{}: {}", denial.what, denial.why)),
        Outcome::TimedOut { limit } => Some(format!("stopped after {limit:?}, its time limit")),
        Outcome::Cancelled => Some("cancelled".into()),
    }
}

/// Returns details of a failure. Models never receive them.
pub(super) fn failure_detail(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => failure.detail.as_deref(),
        Outcome::Completed(_)
        | Outcome::Denied(_)
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled => None,
    }
}

/// Names the source of a notice, such as `timer says aloud, late`. A plugin's name is safe to
/// print.
pub(super) fn notice_source(notice: &PluginNotice) -> String {
    let aloud = if notice.speech.is_some() { " aloud" } else { "" };
    let late = if notice.late { ", late" } else { "" };
    format!("{} says{aloud}{late}", notice.plugin)
}

/// Returns the lines of a notice. Repeated lines, such as those of timers that end at the same
/// time, become one line with a count.
pub(super) fn notice_lines(notice: &PluginNotice) -> Vec<String> {
    let mut lines: Vec<(&str, usize)> = Vec::new();
    for line in notice.text.lines() {
        match lines.last_mut() {
            Some((last, times)) if *last == line => *times += 1,
            _ => lines.push((line, 1)),
        }
    }
    let line = |(line, times): (&str, usize)| match times {
        1 => line.to_owned(),
        times => format!("{line} ({times} times)"),
    };
    lines.into_iter().map(line).collect()
}

/// Prints the policy text that would allow a denied call, with its place.
pub(super) fn print_denial_fix(denial: &Denial, policy_file: &Path, out: &CliOutput) {
    if let Some(fix) = &denial.fix {
        print_fix_text(fix, policy_file, out);
    }
}

/// Prints a policy text with an instruction.
pub(super) fn print_fix_text(fix: &str, policy_file: &Path, out: &CliOutput) {
    out.print_hint(&format!("to allow this, {}:", fix_location(fix, policy_file)));
    out.print_block(fix);
}

/// Describes where a policy text belongs.
pub(super) fn fix_location(fix: &str, policy_file: &Path) -> String {
    // The text replaces the existing table, which would otherwise occur twice.
    let replaced =
        if fix.starts_with("[plugin.") { " (in place of the same table there)" } else { "" };
    format!("put into {}{replaced}", policy_file.display())
}

/// Prints the policy text that all denied calls need, as the answer of the command.
pub(super) fn print_needed_grants<'d>(
    denials: impl IntoIterator<Item = &'d Denial>,
    out: &CliOutput,
) {
    let text = missing_grants::merge_grant_texts(
        denials.into_iter().filter_map(|denial| denial.fix.as_deref()),
    );
    if text.is_empty() {
        out.print_note("No policy entry would allow it.");
    }
    text.lines().for_each(|line| out.print_line(line));
}

/// Prints everything that the user needs to decide about a question.
pub(super) fn print_approval_request(request: &ApprovalRequest, out: &CliOutput) {
    let digest: String = request.plugin_digest.chars().take(12).collect();
    let call = &request.call;
    out.print_question(&match &request.subject {
        ApprovalSubject::Call => format!("{} asks to run", call.tool),
        ApprovalSubject::Access { what } => {
            format!("{} wants {}", call.tool.plugin, text::escape_excerpt(what, SUBJECT_CHARS_MAX))
        }
    });
    let version = &request.plugin_version;
    out.print_block(&format!("plugin     {} {version}, digest {digest}…", call.tool.plugin));
    if request.subject != ApprovalSubject::Call {
        out.print_block(&format!("tool       {}", call.tool));
    }
    if let Some(shown) = &request.request {
        request_lines(shown, false).iter().for_each(|line| out.print_block(line));
    }
    for line in argument_lines(&call.arguments) {
        out.print_block(&format!("argument   {line}"));
    }
    for capability in &request.capabilities {
        out.print_block(&format!("can        {}", text::escape_line(capability)));
    }
    out.print_block(&format!("asked by   {}", text::escape_line(&request.reason)));
    if let Some(rule) = &request.rule {
        out.print_block("always would write into your policy:");
        rule.lines().for_each(|line| out.print_block(&format!("    {line}")));
    }
}

/// Prints the whole outgoing request.
pub(super) fn print_whole_request(request: &ApprovalRequest, out: &CliOutput) {
    if let ApprovalSubject::Access { what } = &request.subject {
        out.print_question(&format!(
            "{} wants {}",
            request.call.tool.plugin,
            text::escape_line(what)
        ));
    }
    if let Some(shown) = &request.request {
        request_lines(shown, true).iter().for_each(|line| out.print_block(line));
    }
}

/// Returns one line per argument, so that a long one cannot push another out of sight.
fn argument_lines(arguments: &str) -> Vec<String> {
    let line = |name: &str, value: &str| {
        let shown = text::escape_excerpt(value, ARGUMENT_CHARS_MAX);
        match value.chars().count().saturating_sub(ARGUMENT_CHARS_MAX) {
            0 => format!("{name}{shown}"),
            more => format!("{name}{shown} ({more} more characters)"),
        }
    };
    match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(map)) => map
            .iter()
            .map(|(key, value)| {
                line(&format!("{} = ", text::escape_excerpt(key, 64)), &value.to_string())
            })
            .collect(),
        _ => vec![line("", arguments)],
    }
}

/// Returns one line per request that is not granted, with the command that grants it.
pub(super) fn ungranted_lines(entry: &RegisteredPlugin) -> Vec<String> {
    let name = entry.name();
    let line = |request: &UngrantedRequest| match request.grant_flags() {
        Some(flags) => {
            format!("not granted: {request}. To grant it: sallyport policy grant {name} {flags}")
        }
        None => format!("lacks {request}"),
    };
    entry
        .grant()
        .ungranted_requests()
        .iter()
        .map(|request| text::escape_line(&line(request)))
        .collect()
}

/// Returns the requests that are not granted, as JSON.
pub(super) fn ungranted_json(entry: &RegisteredPlugin) -> Value {
    let found = entry.grant().ungranted_requests();
    let one = |request: &UngrantedRequest| {
        json!({
            "request": request.to_string(),
            "needed": request.is_needed(),
            "denied_at": request.denied_at.as_ref().map(ToString::to_string),
            "grant": request.grant_flags(),
        })
    };
    found.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_argument_hides_no_other() {
        let padded = format!(r#"{{"a":"{}","path":"/important"}}"#, " ".repeat(5000));
        let lines = argument_lines(&padded);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("… (4502 more characters)"), "{}", lines[0]);
        assert_eq!(lines[1], "path = \"/important\"");
        assert_eq!(argument_lines(r#"{"a":"x\ny\u001b[2J"}"#), [r#"a = "x\ny\u001b[2J""#]);
        assert_eq!(argument_lines("{}"), [""; 0]);
    }
}
