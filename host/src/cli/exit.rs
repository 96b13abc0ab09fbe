//! How a command ends: the exit code, and for failures the words.

use std::process::ExitCode;

use sallyport_contract::{Denial, FailureKind, Outcome};
use sallyport_model::ModelError;
use sallyport_policy::Place;
use sallyport_session::TurnEnd;

use crate::{
    config::ConfigError,
    gate::StandingError,
    lock::LockError,
    registry::Missing,
    roles::{RoleError, guide::GuideError},
    secrets::VaultError,
};

/// The exit codes of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Done = 0,
    /// Failed, for a reason that has no code of its own.
    Failed = 1,
    /// The command line made no sense.
    Usage = 2,
    /// Configuration or policy.
    Policy = 3,
    /// The provider refused the credentials.
    Credentials = 4,
    /// The provider is unreachable.
    Unreachable = 5,
    /// An approval was needed and nobody was there to ask.
    NobodyToAsk = 6,
    /// A tool failed.
    ToolFailed = 7,
    /// A budget was reached.
    Budget = 8,
    /// A plugin was rejected.
    PluginRejected = 9,
    /// The user interrupted.
    Interrupted = 130,
}

/// A command that could not do what it was asked.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Where a file has the mistake.
    pub(super) place: Option<Place>,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl Failure {
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, place: None }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        let place = match error {
            ConfigError::Mistake(mistake) => Some(mistake.place()),
            _ => None,
        };
        Self { exit: Exit::Policy, message, hint, place }
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::new(Exit::Policy, error.to_string()) }
    }
}

impl From<StandingError> for Failure {
    fn from(error: StandingError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        let place = match error {
            StandingError::Mistake(mistake) => Some(mistake.place()),
            StandingError::Unreadable { .. } => None,
        };
        Self { exit: Exit::Policy, message, hint, place }
    }
}

impl From<RoleError> for Failure {
    fn from(error: RoleError) -> Self {
        let message = error.to_string();
        match error {
            RoleError::Missing(missing @ Missing::Unusable { .. }) => missing.into_failure(),
            RoleError::Missing(Missing::Unknown { near, .. }) => {
                let hint = match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => "`sallyport plugin list` shows which there are".to_owned(),
                };
                Self::new(Exit::Policy, message).with_hint(hint)
            }
            RoleError::OtherRole { .. } => {
                let hint = "`sallyport plugin list` shows the plugins and their roles";
                Self::new(Exit::Policy, message).with_hint(hint)
            }
            RoleError::Broken(_) => Self::new(Exit::PluginRejected, message),
        }
    }
}

impl From<GuideError> for Failure {
    fn from(error: GuideError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        match error {
            GuideError::Role(error) => error.into(),
            _ => Self::new(Exit::Policy, message).with_hint(hint),
        }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::new(Exit::Policy, error.to_string()).with_hint(error.hint())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failed, error.to_string())
    }
}

impl Exit {
    /// The code of a command that made one call.
    pub(super) fn of_outcome(outcome: &Outcome) -> Self {
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

    /// The code of a model that gave no answer.
    pub(super) fn of_model(error: &ModelError) -> Self {
        match error {
            ModelError::Credentials { .. } => Self::Credentials,
            ModelError::Unreachable { .. } => Self::Unreachable,
            ModelError::Denied { nobody_to_ask: true, .. } => Self::NobodyToAsk,
            ModelError::Denied { .. } => Self::Policy,
            _ => Self::Failed,
        }
    }

    /// The code of a turn.
    pub(super) fn of_turn(end: &TurnEnd) -> Self {
        match end {
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } => Self::Done,
            TurnEnd::BudgetReached { .. } => Self::Budget,
            TurnEnd::ModelFailed(error) => Self::of_model(error),
            TurnEnd::Cancelled => Self::Interrupted,
            TurnEnd::InputRefused(_) => Self::Usage,
        }
    }
}
