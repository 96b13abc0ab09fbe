//! How calls and questions look to a person, in every front end of the terminal.

use std::path::Path;

use sallyport_contract::{ApprovalRequest, CallReport, Denial, Outcome, text};

use super::output::Output;

/// Arguments of a question are shown whole up to here; what is longer could hide its end.
const ARGUMENTS_CHARS_MAX: usize = 4000;

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

/// The lines that would allow what was denied, and where they belong.
pub(super) fn fix(denial: &Denial, policy_file: &Path, out: &Output) {
    if let Some(fix) = &denial.fix {
        // The text is complete: a table that is there already would stand twice otherwise.
        let replaced =
            if fix.starts_with("[plugin.") { " (in place of the same table there)" } else { "" };
        out.hint(&format!("to allow this, put into {}{replaced}:", policy_file.display()));
        out.block(fix);
    }
}

/// What a person reads before they say yes or no.
pub(super) fn question(request: &ApprovalRequest, out: &Output) {
    let digest: String = request.plugin_digest.chars().take(12).collect();
    let call = &request.call;
    out.question(&format!("{} asks to run", call.tool));
    let version = &request.plugin_version;
    out.block(&format!("plugin     {} {version}, digest {digest}…", call.tool.plugin));
    let arguments = text::excerpt(&call.arguments, ARGUMENTS_CHARS_MAX);
    out.block(&format!("arguments  {arguments}"));
    for power in &request.powers {
        out.block(&format!("can        {}", text::one_line(power)));
    }
    out.block(&format!("asked by   {}", text::one_line(&request.reason)));
}
