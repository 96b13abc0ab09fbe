//! How calls and questions look to a person, in every front end of the terminal.

use std::path::Path;

use sallyport_contract::{
    ApprovalRequest, CallReport, Denial, Outcome, Subject, services::Notice, text,
};

use super::output::Output;
use crate::gate::needed;

/// One argument is shown up to here, with the number of characters that are not.
const ARGUMENT_CHARS_MAX: usize = 500;

/// Most of an address's query before it is cut with a mark.
const QUERY_CHARS_MAX: usize = 2000;

/// How a call ended, in a few words: `completed in 12 ms`.
pub(super) fn ending(report: &CallReport) -> String {
    // What was refused at the gate took no time worth telling.
    if report.elapsed.is_zero() {
        return report.outcome.word().to_owned();
    }
    let time = format!("{} in {:.1?}", report.outcome.word(), report.elapsed);
    match report.memory_bytes_peak {
        0 => time,
        bytes => format!("{time}, {:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// Why a call did not complete, for the person.
pub(super) fn reason(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Completed(_) => None,
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            Some(failure.message.clone())
        }
        Outcome::Denied(denial) => Some(format!("{}: {}", denial.what, denial.why)),
        Outcome::TimedOut { limit } => Some(format!("stopped after {limit:?}, its time limit")),
        Outcome::Cancelled => Some("cancelled".into()),
    }
}

/// More about a failure, which no model ever sees.
pub(super) fn detail(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => failure.detail.as_deref(),
        Outcome::Completed(_)
        | Outcome::Denied(_)
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled => None,
    }
}

/// Who says something, and how it comes: `timer says aloud, late`. A plugin's name is safe to show.
pub(super) fn speaker(notice: &Notice) -> String {
    let aloud = if notice.speech.is_some() { " aloud" } else { "" };
    let late = if notice.late { ", late" } else { "" };
    format!("{} says{aloud}{late}", notice.plugin)
}

/// The lines that would allow what was denied, and where they belong.
pub(super) fn fix(denial: &Denial, policy_file: &Path, out: &Output) {
    if let Some(fix) = &denial.fix {
        lifted_by(fix, policy_file, out);
    }
}

/// The policy text that lifts a refusal, with what to do with it.
pub(super) fn lifted_by(fix: &str, policy_file: &Path, out: &Output) {
    out.hint(&format!("to allow this, {}:", where_to_put(fix, policy_file)));
    out.block(fix);
}

/// What to do with a text that lifts a refusal.
pub(super) fn where_to_put(fix: &str, policy_file: &Path) -> String {
    // The text is complete: a table that is there already would stand twice otherwise.
    let replaced =
        if fix.starts_with("[plugin.") { " (in place of the same table there)" } else { "" };
    format!("put into {}{replaced}", policy_file.display())
}

/// The policy text that all that was denied would have needed, as the answer of the command.
pub(super) fn needed<'d>(denials: impl IntoIterator<Item = &'d Denial>, out: &Output) {
    let text = needed::together(denials.into_iter().filter_map(|denial| denial.fix.as_deref()));
    if text.is_empty() {
        out.note("no policy text would have allowed it");
    }
    text.lines().for_each(|line| out.line(line));
}

/// What a person reads before they say yes or no.
pub(super) fn question(request: &ApprovalRequest, out: &Output) {
    let digest: String = request.plugin_digest.chars().take(12).collect();
    let call = &request.call;
    out.question(&match &request.subject {
        Subject::Call => format!("{} asks to run", call.tool),
        Subject::Access { what } => format!("{} wants {what}", call.tool.plugin),
    });
    let version = &request.plugin_version;
    out.block(&format!("plugin     {} {version}, digest {digest}…", call.tool.plugin));
    if request.subject != Subject::Call {
        out.block(&format!("tool       {}", call.tool));
    }
    if let Some(query) = &request.query {
        out.block(&format!("query      {}", text::excerpt(query, QUERY_CHARS_MAX)));
        out.block("           (an answer that lasts holds for any query of this address)");
    }
    for line in argument_lines(&call.arguments) {
        out.block(&format!("argument   {line}"));
    }
    for power in &request.powers {
        out.block(&format!("can        {}", text::one_line(power)));
    }
    out.block(&format!("asked by   {}", text::one_line(&request.reason)));
    if let Some(rule) = &request.rule {
        out.block("always would write into your policy:");
        rule.lines().for_each(|line| out.block(&format!("    {line}")));
    }
}

/// Every argument on a line of its own, so that a long one cannot push another out of sight.
fn argument_lines(arguments: &str) -> Vec<String> {
    let line = |name: &str, value: &str| {
        let shown = text::excerpt(value, ARGUMENT_CHARS_MAX);
        match value.chars().count().saturating_sub(ARGUMENT_CHARS_MAX) {
            0 => format!("{name}{shown}"),
            more => format!("{name}{shown} ({more} more characters)"),
        }
    };
    match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(map)) => map
            .iter()
            .map(|(key, value)| line(&format!("{} = ", text::excerpt(key, 64)), &value.to_string()))
            .collect(),
        _ => vec![line("", arguments)],
    }
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
