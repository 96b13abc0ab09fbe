//! Descriptions of calls and questions, shared by all front ends at the terminal.

use std::{fmt::Display, time::Duration};

use sallyport_contract::{
    ApprovalRequest, ApprovalSubject, CallReport, Denial, Outcome, PolicyFix, UserAnswer, text,
};

use sallyport_policy::UngrantedRequest;
use sallyport_runtime::{
    gate::missing_grants,
    question_text::{form_title, question_parts},
    registry::RegisteredPlugin,
};
use sallyport_terminal::card::request_lines;
use serde_json::Value;

use super::output::CliOutput;

/// Most characters shown of an argument. The rest is counted.
const ARGUMENT_CHARS_MAX: usize = 500;

/// Most characters of the subject in the first line of a question.
const SUBJECT_CHARS_MAX: usize = 400;

/// Most characters of the main argument in the line about a call.
const MAIN_ARGUMENT_CHARS_MAX: usize = 60;

/// Names of arguments that usually tell what a call is about, the most telling first.
const MAIN_ARGUMENT_NAMES: [&str; 12] = [
    "path", "file", "url", "query", "command", "code", "text", "name", "title", "location", "id",
    "to",
];

/// Describes a call by its tool and its main argument: `files.read notes/todo.txt`.
///
/// The main argument is the one with the most telling name, else the first with a short form.
pub(super) fn call_text(tool: &impl Display, arguments: &str) -> String {
    let Ok(Value::Object(map)) = serde_json::from_str(arguments) else { return tool.to_string() };
    let short = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let telling = MAIN_ARGUMENT_NAMES.iter().find_map(|name| map.get(*name).and_then(short));
    match telling.or_else(|| map.values().find_map(short)) {
        Some(main) => {
            format!("{tool} {}", text::escape_excerpt(main.trim(), MAIN_ARGUMENT_CHARS_MAX))
        }
        None => tool.to_string(),
    }
}

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
        Outcome::Denied(denial) => Some(denial.to_string()),
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

/// Prints the command that would allow a denied call.
pub(super) fn print_denial_fix(denial: &Denial, out: &CliOutput) {
    denial.fix.iter().for_each(|fix| out.print_hint(&fix_text(fix)));
}

/// Describes how the user can allow a denied action.
pub(super) fn fix_text(fix: &PolicyFix) -> String {
    format!("to allow it: {}", fix.command())
}

/// Prints the policy text that all denied calls need, as the answer of the command.
pub(super) fn print_needed_grants<'d>(
    denials: impl IntoIterator<Item = &'d Denial>,
    out: &CliOutput,
) {
    let text = missing_grants::merge_grant_texts(
        denials.into_iter().filter_map(|denial| denial.fix_toml()),
    );
    if text.is_empty() {
        out.print_note("No policy entry would allow it.");
    }
    text.lines().for_each(|line| out.print_line(line));
}

/// The answer of the user to a question about a call.
pub(super) fn answer_text(answer: UserAnswer) -> &'static str {
    match answer {
        UserAnswer::Once => "yes, once",
        UserAnswer::Session => "yes, for the session",
        UserAnswer::Always => "yes, always",
        UserAnswer::Refused => "no",
    }
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
        ApprovalSubject::Grant(question) => text::escape_excerpt(&question.what, SUBJECT_CHARS_MAX),
        ApprovalSubject::Form(_) => form_title(call),
    });
    for line in request.form_question().into_iter().flat_map(|form| form.message.split('\n')) {
        // The bar keeps the server's words from looking like a part of the question.
        out.print_detail(&format!("           │ {}", text::escape_line(line)));
    }
    let version = &request.plugin_version;
    out.print_detail(&format!("plugin     {} {version}, digest {digest}…", call.tool.plugin));
    if request.subject != ApprovalSubject::Call {
        out.print_detail(&format!("tool       {}", call.tool));
    }
    for (name, part) in question_parts(request) {
        out.print_detail(&format!("{name:10} {}", text::escape_line(&part)));
    }
    if let Some(shown) = &request.request {
        request_lines(shown, false).iter().for_each(|line| out.print_detail(line));
    }
    for line in argument_lines(&call.arguments) {
        out.print_detail(&format!("argument   {line}"));
    }
    for capability in &request.capabilities {
        out.print_detail(&format!("can        {}", text::escape_line(capability)));
    }
    out.print_detail(&format!("asked by   {}", text::escape_line(&request.reason)));
    if let Some(rule) = &request.rule {
        out.print_detail("always would write into your policy:");
        // The digest of a rule fits 80 columns with the indent of a block.
        out.print_block(rule);
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
        request_lines(shown, true).iter().for_each(|line| out.print_detail(line));
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

/// Returns one line per request that is not granted, and the command that grants them.
pub(super) fn ungranted_lines(entry: &RegisteredPlugin) -> Vec<String> {
    let requests = entry.grant().ungranted_requests();
    let line = |request: &UngrantedRequest| match request.denied_at {
        None => format!("not granted: {request}"),
        Some(_) => format!("lacks {request}"),
    };
    let mut lines: Vec<String> =
        requests.iter().map(|request| text::escape_line(&line(request))).collect();
    lines.extend(grant_command(entry, &requests).map(|command| format!("To grant it: {command}")));
    lines
}

/// Returns the command that grants requests of a plugin, if one can: all that it requests if there
/// are several.
pub(super) fn grant_command(
    entry: &RegisteredPlugin,
    requests: &[UngrantedRequest],
) -> Option<String> {
    let mut flags = requests.iter().filter_map(UngrantedRequest::grant_flags);
    let first = flags.next()?;
    let flags = if flags.next().is_some() { "--requested".to_owned() } else { first };
    Some(format!("sallyport policy grant {} {flags}", entry.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_was_shown_without_what_it_is_about() {
        let long = format!(r#"{{"path":"{}"}}"#, "x".repeat(100));
        let rows = [
            (r#"{"content":"hi","path":"notes/todo.txt"}"#, "files.read notes/todo.txt"),
            (r#"{"options":{"a":1},"city":"Berlin"}"#, "files.read Berlin"),
            (r#"{"count":3}"#, "files.read 3"),
            (r#"{"flags":[true]}"#, "files.read"),
            ("{}", "files.read"),
            ("no JSON", "files.read"),
            ("{\"path\":\"a\\u001b[2J\\nb\"}", "files.read a\\u{1b}[2J\\nb"),
            (&long, &format!("files.read {}…", "x".repeat(60))),
        ];
        for (arguments, want) in rows {
            assert_eq!(call_text(&"files.read", arguments), want, "{arguments}");
        }
    }

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
