//! The result of a run, for the model, the user and the audit.

use sallyport_contract::{
    CallFailure, CallReport, Denial, Effect, FailureKind, LogLevel, Outcome, PluginName,
    ToolOutput, text,
};
use sallyport_policy::{Capability, FsAccess, Grant};
use sallyport_process::{
    OutputError, ProcessExit, ProcessResult, ProcessSpec, ReachedProcessLimit, RunError, Script,
    parse_output,
};

/// Maximum length of standard error in a failure message, in characters. The end is kept: a trace
/// ends with its reason.
const STDERR_CHARS_MAX: usize = 2000;

/// Maximum number of lines of standard error in the log.
const LOG_LINES_MAX: usize = 200;

/// Maximum length of a log line, in characters.
const LOG_LINE_CHARS_MAX: usize = 500;

/// A finished run, with its script, specification and grant.
pub(super) struct FinishedScriptRun<'a> {
    pub(super) script: &'a Script,
    pub(super) spec: &'a ProcessSpec,
    pub(super) process_result: ProcessResult,
    pub(super) grant: &'a Grant,
}

/// Strings that programs print when the system denies access to a file: the text of `strerror`, the
/// name of the error, and Python's exception.
const ACCESS_DENIED_MARKERS: [&str; 3] = ["Permission denied", "EACCES", "PermissionError"];

impl FinishedScriptRun<'_> {
    /// Returns the report of the call.
    pub(super) fn call_report(&self) -> CallReport {
        let mut effects = vec![self.usage_effect()];
        effects.extend(self.log_effects());
        effects.extend(self.time_limit_warning());
        CallReport { effects, ..CallReport::from(self.outcome()) }
    }

    fn tool_name(&self) -> &str {
        &self.script.definition.name
    }

    fn outcome(&self) -> Outcome {
        match self.process_result.exit {
            ProcessExit::Code(0) => match parse_output(&self.process_result.stdout) {
                Ok(data) => Outcome::Completed(ToolOutput { data, ..ToolOutput::default() }),
                Err(error) => self.bad_output_outcome(&error),
            },
            ProcessExit::Code(code) => {
                self.failure_outcome(FailureKind::Failed, format!("exit code {code}"))
            }
            ProcessExit::Signal(signal) => {
                self.failure_outcome(FailureKind::Trapped, format!("signal {signal}"))
            }
            ProcessExit::Limit(ReachedProcessLimit::Time(limit)) => Outcome::TimedOut { limit },
            ProcessExit::Limit(limit) => {
                let message = format!("{} was stopped at its limit of {limit}", self.tool_name());
                Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message))
            }
        }
    }

    fn failure_outcome(&self, kind: FailureKind, cause: String) -> Outcome {
        let stderr_text = end_of_text(self.process_result.stderr.trim());
        if let Some(denial) = self.file_access_denial(&cause, &stderr_text) {
            return Outcome::Denied(denial);
        }
        let message = match stderr_text.is_empty() {
            true => format!("{} failed ({cause}) without a message", self.tool_name()),
            false => format!("{} failed ({cause}): {stderr_text}", self.tool_name()),
        };
        Outcome::Failed(CallFailure::new(kind, message))
    }

    /// Returns a denial if standard error shows that a file was not accessible. Only the program
    /// knows which file, so this text is the only evidence. It decides only how the failure is
    /// reported.
    fn file_access_denial(&self, cause: &str, stderr_text: &str) -> Option<Denial> {
        if !ACCESS_DENIED_MARKERS.iter().any(|marker| stderr_text.contains(marker)) {
            return None;
        }
        let why = match self.grant.fs().is_empty() {
            true => "its policy grants no folder",
            false => "the file may lie outside the folders that its policy grants",
        };
        let subject = format!("{} failed ({cause}): {stderr_text}", self.tool_name());
        let fix = self.grant.missing_files_fix(None, FsAccess::Read);
        Some(Denial::new(subject, why).with_fix(fix))
    }

    fn bad_output_outcome(&self, error: &OutputError) -> Outcome {
        let message = format!("{} gave no answer: {error}", self.tool_name());
        let failure = CallFailure::new(FailureKind::BadOutput, message);
        Outcome::Failed(failure.with_detail(error.hint()))
    }

    fn usage_effect(&self) -> Effect {
        let ProcessResult { exit, cpu_time, .. } = &self.process_result;
        let program = self.spec.program.display();
        Effect::Used {
            capability: Capability::Process.as_str().to_owned(),
            what: format!("{program}: {exit}, after {cpu_time:.2?} of processor time"),
        }
    }

    /// Returns the lines of standard error as log entries.
    fn log_effects(&self) -> impl Iterator<Item = Effect> {
        let lines = self.process_result.stderr.lines().filter(|line| !line.trim().is_empty());
        lines.take(LOG_LINES_MAX).map(|line| Effect::Logged {
            level: LogLevel::Info,
            text: text::escape_excerpt(line, LOG_LINE_CHARS_MAX),
        })
    }

    /// Returns a warning if the policy's time limit ended the program before its own timeout.
    fn time_limit_warning(&self) -> Option<Effect> {
        let (wanted, given) = (self.script.definition.timeout, self.spec.limits.time);
        let is_shortened =
            matches!(self.process_result.exit, ProcessExit::Limit(ReachedProcessLimit::Time(_)));
        (is_shortened && given < wanted).then(|| Effect::Logged {
            level: LogLevel::Warn,
            text: format!(
                "its definition asks for {wanted:?}, and limits.time of the policy is {given:?}"
            ),
        })
    }
}

/// Returns the end of a text, made safe to show.
fn end_of_text(stderr_text: &str) -> String {
    let skipped = stderr_text.chars().count().saturating_sub(STDERR_CHARS_MAX);
    let end: String = stderr_text.chars().skip(skipped).collect();
    let mark = if skipped > 0 { "… " } else { "" };
    format!("{mark}{}", text::escape_multiline(&end))
}

/// Returns the outcome of a program that did not run. The message is for the model; the detail
/// contains the reason for the user.
pub(super) fn not_run_outcome(plugin: &PluginName, error: &RunError) -> Outcome {
    let (kind, message) = match error {
        RunError::Changed { .. } => {
            (FailureKind::Unavailable, format!("{plugin} has changed on disk since it was loaded"))
        }
        RunError::Input { .. } => (FailureKind::LimitReached, error.to_string()),
        RunError::NoWall { .. }
        | RunError::Grant { .. }
        | RunError::Start { .. }
        | RunError::Stage { .. } => {
            (FailureKind::Unavailable, format!("the program of {plugin} cannot be started"))
        }
    };
    let failure = CallFailure::new(kind, message);
    Outcome::Failed(failure.with_detail(format!("{error}; {}", error.hint())))
}
