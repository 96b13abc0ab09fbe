//! The result of a call of a server, for the model, the user and the audit.

use std::time::Duration;

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, Effect, FailureKind, LogLevel, Outcome, PluginName,
    Redactor, text,
};
use sallyport_mcp_client::{AskedQuestion, ServerAnswer, ServerError, output_bytes};
use sallyport_policy::Grant;
use sallyport_process::RunError;

use super::{questions::TimeLimitReached, running::McpStartError};
use crate::script::{RUN_ACTION, denied_report};

/// Longest reason of a tool that failed, in characters.
const REASON_CHARS_MAX: usize = 4000;

/// Longest part of a question of the server in records, in characters.
const ASKED_CHARS_MAX: usize = 200;

/// A call that a server was asked to run.
pub(super) struct FinishedServerCall<'a> {
    pub(super) call: &'a AdmittedCall,
    pub(super) grant: &'a Grant,
    pub(super) answer: Result<Result<ServerAnswer, ServerError>, TimeLimitReached>,
    pub(super) limit: Duration,
    /// What the server asked the user.
    pub(super) questions: Vec<AskedQuestion>,
    /// What happened besides.
    pub(super) remarks: Vec<String>,
    /// How the server ended, if it did.
    pub(super) end: String,
}

impl FinishedServerCall<'_> {
    /// Returns the report of the call, with the effect that it has anyway. Secrets are removed before texts are cut, because a cut
    /// inside a secret would hide it from the redactor.
    pub(super) fn into_report(self, used: Effect, redactor: &Redactor) -> CallReport {
        let logged = self.remarks.iter().map(|remark| Effect::Logged {
            level: LogLevel::Warn,
            text: text::escape_line(&redactor.redact_text(remark)),
        });
        let safe = |text: &str| text::escape_excerpt(&redactor.redact_text(text), ASKED_CHARS_MAX);
        let asked = self.questions.iter().map(|AskedQuestion { what, answer }| Effect::Asked {
            what: format!("the server asked: {}", safe(what)),
            answer: safe(answer),
        });
        let effects = [used].into_iter().chain(asked).chain(logged).collect();
        CallReport { effects, ..CallReport::from(self.outcome(redactor)) }
    }

    fn outcome(self, redactor: &Redactor) -> Outcome {
        let tool = &self.call.tool().tool;
        let failed = |kind, message: String| Outcome::Failed(CallFailure::new(kind, message));
        match self.answer {
            Err(_) => Outcome::TimedOut { limit: self.limit },
            Ok(Ok(ServerAnswer::Completed(output))) => {
                let bytes_max = self.grant.limits().output_bytes;
                let bytes = output_bytes(&output);
                match bytes > bytes_max {
                    true => failed(
                        FailureKind::LimitReached,
                        format!("{tool} returned {bytes} bytes, at most {bytes_max} are allowed"),
                    ),
                    false => Outcome::Completed(output),
                }
            }
            Ok(Ok(ServerAnswer::Failed(reason))) => {
                let reason = safe_text(&reason, redactor);
                failed(FailureKind::Failed, format!("{tool} failed: {reason}"))
            }
            Ok(Err(ServerError::Refused { message, is_about_arguments: true })) => {
                let message = format!("{tool} refused the arguments: {message}");
                let failure = CallFailure::new(FailureKind::InvalidArguments, message);
                Outcome::InvalidArguments(failure)
            }
            Ok(Err(error @ ServerError::Refused { .. })) => {
                failed(FailureKind::Failed, format!("{tool} failed: {error}"))
            }
            Ok(Err(error @ ServerError::BadAnswer(_))) => {
                failed(FailureKind::BadOutput, format!("{tool} gave no answer: {error}"))
            }
            Ok(Err(error)) => {
                let detail = safe_text(&format!("{error}{}", self.end), redactor);
                unavailable_outcome(self.grant.plugin(), detail)
            }
        }
    }
}

/// The report of a call whose server does not run.
pub(super) fn not_started(grant: &Grant, error: &McpStartError, redactor: &Redactor) -> CallReport {
    match error {
        McpStartError::Process(RunError::NoWall { .. }) => {
            denied_report(grant.deny_unsandboxed(RUN_ACTION))
        }
        McpStartError::Process(run_error) => {
            let detail = format!("{run_error}; {}", run_error.hint());
            unavailable(grant.plugin(), detail)
        }
        error => unavailable(grant.plugin(), safe_text(&error.to_string(), redactor)),
    }
}

/// The report of a call whose server offers other tools than the user accepted.
pub(super) fn changed_tools(plugin: &PluginName) -> CallReport {
    let message = format!(
        "the tools of {plugin} have changed since they were accepted; only the user can accept \
         them, with `sallyport plugin accept {plugin}`"
    );
    Outcome::Failed(CallFailure::new(FailureKind::Unavailable, message)).into()
}

/// The report of a call that could not be made. The model reads only that; the user reads why.
fn unavailable(plugin: &PluginName, detail: String) -> CallReport {
    unavailable_outcome(plugin, detail).into()
}

fn unavailable_outcome(plugin: &PluginName, detail: String) -> Outcome {
    let message = format!("the server of {plugin} is not available");
    Outcome::Failed(CallFailure::new(FailureKind::Unavailable, message).with_detail(detail))
}

/// A text of the server without secrets, made safe to show.
fn safe_text(server_text: &str, redactor: &Redactor) -> String {
    let redacted = redactor.redact_text(server_text);
    let shown: String = redacted.chars().take(REASON_CHARS_MAX).collect();
    let mark = if shown.len() < redacted.len() { " …" } else { "" };
    format!("{}{mark}", text::escape_multiline(&shown))
}
