//! What came of a run, as a model, a person and the audit read it.

use sallyport_contract::{
    CallReport, Denial, Effect, Failure, FailureKind, LogLevel, Outcome, PluginName, ToolOutput,
    text,
};
use sallyport_policy::{Access, Capability, Grant};
use sallyport_process::{Exit, Finished, Limit, OutputError, RunError, Script, Spec, parse_output};

/// How much of what a program says when it fails is told: the end of a trace, where the reason is.
const ERRORS_CHARS_MAX: usize = 2000;

/// Lines of standard error that are kept as log.
const LOG_LINES_MAX: usize = 200;

/// Longest line of that log.
const LOG_LINE_CHARS_MAX: usize = 500;

/// A run that is over, with what it was to be.
pub(super) struct Ended<'a> {
    pub(super) script: &'a Script,
    pub(super) spec: &'a Spec,
    pub(super) finished: Finished,
    pub(super) grant: &'a Grant,
}

/// What programs say when the system keeps them from a file: the words of `strerror`, the name of the
/// error, and that of Python's exception.
const REFUSED: [&str; 3] = ["Permission denied", "EACCES", "PermissionError"];

impl Ended<'_> {
    /// Makes the report of a call of it.
    pub(super) fn report(&self) -> CallReport {
        let mut effects = vec![self.used()];
        effects.extend(self.log());
        effects.extend(self.shortened());
        CallReport { effects, ..CallReport::from(self.outcome()) }
    }

    fn name(&self) -> &str {
        &self.script.definition.name
    }

    fn outcome(&self) -> Outcome {
        match self.finished.exit {
            Exit::Code(0) => match parse_output(&self.finished.stdout) {
                Ok(data) => Outcome::Completed(ToolOutput { data, ..ToolOutput::default() }),
                Err(error) => self.no_answer(&error),
            },
            Exit::Code(code) => self.failed(FailureKind::Failed, format!("exit code {code}")),
            Exit::Signal(signal) => self.failed(FailureKind::Trapped, format!("signal {signal}")),
            Exit::Limit(Limit::Time(limit)) => Outcome::TimedOut { limit },
            Exit::Limit(limit) => {
                let message = format!("{} was stopped at its limit of {limit}", self.name());
                Outcome::Failed(Failure::new(FailureKind::LimitReached, message))
            }
        }
    }

    fn failed(&self, kind: FailureKind, how: String) -> Outcome {
        let said = last(self.finished.stderr.trim());
        if let Some(denial) = self.denial(&how, &said) {
            return Outcome::Denied(denial);
        }
        let message = match said.is_empty() {
            true => format!("{} failed ({how}) without a message", self.name()),
            false => format!("{} failed ({how}): {said}", self.name()),
        };
        Outcome::Failed(Failure::new(kind, message))
    }

    /// The refusal of a file that the walls keep from the program. Only the program knows which file
    /// it was, so its own words are all there is to go by, and they serve for advice alone.
    fn denial(&self, how: &str, said: &str) -> Option<Denial> {
        if !REFUSED.iter().any(|words| said.contains(words)) {
            return None;
        }
        let why = match self.grant.fs().is_empty() {
            true => "its policy grants no folder",
            false => "the file may lie outside the folders that its policy grants",
        };
        Some(Denial {
            what: format!("{} failed ({how}): {said}", self.name()),
            why: why.to_owned(),
            fix: self.grant.missing_files(None, Access::Read),
            nobody_to_ask: false,
        })
    }

    fn no_answer(&self, error: &OutputError) -> Outcome {
        let message = format!("{} gave no answer: {error}", self.name());
        let failure = Failure::new(FailureKind::BadOutput, message);
        Outcome::Failed(failure.with_detail(error.hint()))
    }

    fn used(&self) -> Effect {
        let Finished { exit, cpu_time, .. } = &self.finished;
        let program = self.spec.program.display();
        Effect::Used {
            capability: Capability::Process.word().to_owned(),
            what: format!("{program}: {exit}, after {cpu_time:.2?} of processor time"),
        }
    }

    /// What a program says beside its answer is its log.
    fn log(&self) -> impl Iterator<Item = Effect> {
        let lines = self.finished.stderr.lines().filter(|line| !line.trim().is_empty());
        lines.take(LOG_LINES_MAX).map(|line| Effect::Logged {
            level: LogLevel::Info,
            text: text::excerpt(line, LOG_LINE_CHARS_MAX),
        })
    }

    /// A program that was ended before its own time was up: the person may want to know why.
    fn shortened(&self) -> Option<Effect> {
        let (wanted, given) = (self.script.definition.timeout, self.spec.limits.time);
        let is_shortened = matches!(self.finished.exit, Exit::Limit(Limit::Time(_)));
        (is_shortened && given < wanted).then(|| Effect::Logged {
            level: LogLevel::Warn,
            text: format!(
                "its definition asks for {wanted:?}, and limits.time of the policy is {given:?}"
            ),
        })
    }
}

/// The end of a text, made safe to show.
fn last(said: &str) -> String {
    let skipped = said.chars().count().saturating_sub(ERRORS_CHARS_MAX);
    let end: String = said.chars().skip(skipped).collect();
    let mark = if skipped > 0 { "… " } else { "" };
    format!("{mark}{}", text::visible(&end))
}

/// Why a program did not run. The model learns that it cannot be used, the person also why.
pub(super) fn not_run(plugin: &PluginName, error: &RunError) -> Outcome {
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
    let failure = Failure::new(kind, message);
    Outcome::Failed(failure.with_detail(format!("{error}; {}", error.hint())))
}
