//! Results of commands: exit codes, and messages for failures.

use std::{fmt, process::ExitCode};

use sallyport_contract::{Denial, FailureKind, Outcome};
use sallyport_model::ModelError;
use sallyport_policy::SourceLocation;
use sallyport_runtime::{
    HostError,
    config::ConfigError,
    gate::PolicyLoadError,
    lock::LockError,
    registry::PluginLookupError,
    roles::{RoleError, guide::GuideError},
    secrets::VaultError,
    session::SessionError,
};
use sallyport_session::TurnEnd;
use sallyport_store::StoreError;

/// The exit codes of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitStatus {
    /// Done.
    Done = 0,
    /// Failed, for a reason without a code of its own.
    Failed = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The configuration or the policy is invalid, or denies the command.
    Policy = 3,
    /// The provider refused the credentials.
    Credentials = 4,
    /// The provider is unreachable.
    Unreachable = 5,
    /// An approval was needed and no user was connected.
    NobodyToAsk = 6,
    /// A tool failed.
    ToolFailed = 7,
    /// A budget was reached.
    Budget = 8,
    /// A plugin was rejected.
    PluginRejected = 9,
    /// The audit could not be written, regardless of the command's result.
    AuditUnwritten = 10,
    /// The user interrupted.
    Interrupted = 130,
}

/// A failure of a command.
#[derive(Debug)]
pub(super) struct CommandFailure {
    pub(super) exit: ExitStatus,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The place of the mistake in a file.
    pub(super) location: Option<SourceLocation>,
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl CommandFailure {
    pub(super) fn new(exit: ExitStatus, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, location: None }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<ConfigError> for CommandFailure {
    fn from(error: ConfigError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        let location = match error {
            ConfigError::Mistake(mistake) => Some(mistake.place()),
            _ => None,
        };
        Self { exit: ExitStatus::Policy, message, hint, location }
    }
}

impl From<HostError> for CommandFailure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Config(error) => error.into(),
            HostError::Policy(error) => error.into(),
            HostError::Lock(error) => error.into(),
            HostError::Store(error) => {
                let failure = Self::new(ExitStatus::Policy, error.to_string());
                Self { hint: error.hint(), ..failure }
            }
            HostError::PluginLookup(missing) => missing.into(),
            HostError::Role(error) => error.into(),
            HostError::Guide(error) => error.into(),
            HostError::Collision(error) => Self::new(ExitStatus::PluginRejected, error.to_string()),
        }
    }
}

impl From<SessionError> for CommandFailure {
    fn from(error: SessionError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        let exit = match error {
            SessionError::Store(
                StoreError::SessionNotFound { .. } | StoreError::AmbiguousSessionPrefix { .. },
            )
            | SessionError::NothingToContinue => ExitStatus::Usage,
            SessionError::Store(_)
            | SessionError::OpenElsewhere { .. }
            | SessionError::OtherUser => ExitStatus::Failed,
            SessionError::KeyMissing { .. } | SessionError::KeyUnreadable { .. } => {
                ExitStatus::Credentials
            }
            SessionError::Model(_) => ExitStatus::Policy,
            SessionError::Role(error) => return error.into(),
            SessionError::Guide(error) => return guide_failure(error),
            SessionError::Collision(_) => ExitStatus::PluginRejected,
        };
        Self { hint, ..Self::new(exit, message) }
    }
}

/// Adds how a guide is selected. The configuration may have done so long ago.
fn guide_failure(error: GuideError) -> CommandFailure {
    let failure = CommandFailure::from(error);
    let names = "--guide names it, or `guide` under [chat] in the configuration";
    let hint = failure.hint.as_ref().map(|hint| format!("{hint}; {names}"));
    failure.with_hint(hint.unwrap_or_else(|| names.to_owned()))
}

impl From<PluginLookupError> for CommandFailure {
    fn from(missing: PluginLookupError) -> Self {
        match missing {
            PluginLookupError::Unknown { message, suggestion } => {
                Self::new(ExitStatus::Usage, message).with_hint(unknown_plugin_hint(suggestion))
            }
            PluginLookupError::Unusable { message, hint, rejected } => {
                let exit = if rejected { ExitStatus::PluginRejected } else { ExitStatus::Policy };
                Self { hint, ..Self::new(exit, message) }
            }
        }
    }
}

fn unknown_plugin_hint(similar_name: Option<String>) -> String {
    match similar_name {
        Some(name) => format!("did you mean {name}?"),
        None => "list the plugins with `sallyport plugin list`".to_owned(),
    }
}

impl From<VaultError> for CommandFailure {
    fn from(error: VaultError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::new(ExitStatus::Policy, error.to_string()) }
    }
}

impl From<PolicyLoadError> for CommandFailure {
    fn from(error: PolicyLoadError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        let location = match error {
            PolicyLoadError::Mistake(mistake) => Some(mistake.place()),
            PolicyLoadError::Unreadable { .. } | PolicyLoadError::Watcher(_) => None,
        };
        Self { exit: ExitStatus::Policy, message, hint, location }
    }
}

impl From<RoleError> for CommandFailure {
    fn from(error: RoleError) -> Self {
        let message = error.to_string();
        match error {
            RoleError::PluginLookup(missing @ PluginLookupError::Unusable { .. }) => missing.into(),
            RoleError::PluginLookup(PluginLookupError::Unknown { suggestion, .. }) => {
                Self::new(ExitStatus::Policy, message).with_hint(unknown_plugin_hint(suggestion))
            }
            RoleError::OtherRole { .. } => {
                let hint = "list the plugins and their roles with `sallyport plugin list`";
                Self::new(ExitStatus::Policy, message).with_hint(hint)
            }
            RoleError::Broken(_) => Self::new(ExitStatus::PluginRejected, message),
        }
    }
}

impl From<GuideError> for CommandFailure {
    fn from(error: GuideError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        match error {
            GuideError::Role(error) => error.into(),
            _ => Self::new(ExitStatus::Policy, message).with_hint(hint),
        }
    }
}

impl From<LockError> for CommandFailure {
    fn from(error: LockError) -> Self {
        Self::new(ExitStatus::Policy, error.to_string()).with_hint(error.hint())
    }
}

impl From<std::io::Error> for CommandFailure {
    fn from(error: std::io::Error) -> Self {
        Self::new(ExitStatus::Failed, error.to_string())
    }
}

impl ExitStatus {
    /// The exit code for a command that made one call.
    pub(super) fn from_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed(_) => Self::Done,
            Outcome::InvalidArguments(_) => Self::Usage,
            Outcome::Denied(Denial { nobody_to_ask: true, .. }) => Self::NobodyToAsk,
            Outcome::Denied(_) => Self::Policy,
            Outcome::Cancelled => Self::Interrupted,
            Outcome::Failed(failure) if failure.kind == FailureKind::Internal => Self::Failed,
            Outcome::Failed(_) | Outcome::TimedOut { .. } => Self::ToolFailed,
        }
    }

    /// The exit code for a model that returned no answer.
    pub(super) fn from_model_error(error: &ModelError) -> Self {
        match error {
            ModelError::Credentials { .. } => Self::Credentials,
            ModelError::Unreachable { .. } | ModelError::TimedOut { .. } => Self::Unreachable,
            ModelError::Denied { nobody_to_ask: true, .. } => Self::NobodyToAsk,
            ModelError::Denied { .. } => Self::Policy,
            _ => Self::Failed,
        }
    }

    /// The exit code for a turn.
    pub(super) fn from_turn_end(end: &TurnEnd) -> Self {
        match end {
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } => Self::Done,
            TurnEnd::BudgetReached { .. } => Self::Budget,
            TurnEnd::ModelFailed(error) => Self::from_model_error(error),
            TurnEnd::Cancelled => Self::Interrupted,
            TurnEnd::InputRefused(_) => Self::Usage,
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
