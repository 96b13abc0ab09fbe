//! `-v`: shows each call with its decision, time and outcome, and the plugin's log lines.

use sallyport_contract::{AdmittedCall, CallReport, Effect, text};
use sallyport_runtime::gate::MessageSink;

use super::call_display::{self, answer_text};

/// Most characters of a call's arguments on its line.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// Reports calls, one line per event.
pub(super) struct CallTracer {
    pub(super) print_line: MessageSink,
}

impl CallTracer {
    /// Reports a decision.
    pub(super) fn trace_decision(
        &self,
        tool: &str,
        arguments: &str,
        result: Result<&AdmittedCall, &CallReport>,
    ) {
        let arguments = text::escape_excerpt(arguments, ARGUMENTS_CHARS_MAX);
        match result {
            Ok(admitted) => {
                (self.print_line)(&format!(
                    "→ {tool} {arguments} · {}",
                    admitted.authorization_reason()
                ));
            }
            Err(report) => {
                (self.print_line)(&format!("→ {tool} {arguments}"));
                self.trace_call_end(tool, report);
            }
        }
    }

    /// Reports the end of a call, after its effects.
    pub(super) fn trace_call_end(&self, tool: &str, report: &CallReport) {
        for effect in &report.effects {
            (self.print_line)(&format!("  {}", effect_line(effect)));
        }
        (self.print_line)(&format!("← {tool} {}", call_display::call_end_text(report)));
        for line in call_display::failure_detail(&report.outcome).into_iter().flat_map(str::lines) {
            (self.print_line)(&format!("  | {line}"));
        }
    }
}

/// Describes an effect in one line.
pub(super) fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::Logged { level, text } => {
            format!("{}: {}", format!("{level:?}").to_lowercase(), text::escape_line(text))
        }
        Effect::Requested { what, status: Some(status), .. } => format!("{what} → {status}"),
        Effect::Requested { what, status: None, .. } => format!("{what} → no answer"),
        Effect::Changed { path } => format!("changed {}", text::escape_line(path)),
        Effect::SecretUsed { name, to: Some(to) } => format!("sent the secret {name} to {to}"),
        Effect::SecretUsed { name, to: None } => format!("read the secret {name}"),
        Effect::Asked { what, answer } => format!("asked: {what}: {}", text::escape_line(answer)),
        Effect::GrantAnswered { what, answer, grants } => {
            let grants: String =
                grants.iter().map(|grant| format!(", {} = {}", grant.key, grant.entry)).collect();
            text::escape_line(&format!("{what}: {}{grants}", answer_text(*answer)))
        }
        Effect::Used { capability, what } => format!("{capability}: {}", text::escape_line(what)),
        Effect::Refused(denial) => format!("refused: {denial}"),
    }
}
