//! Why a secret is not available. Every text here is for the operator; a model reads
//! [`VaultError::model_message`].

use std::{fmt, io, time::Duration};

use sallyport_policy::SecretSource;

use super::source;

/// Why a secret cannot be read, written or removed. It contains no value.
#[derive(Debug, thiserror::Error)]
#[error("the secret {name} cannot be {action} {}: {problem}", source::phrase(secret_source))]
pub struct VaultError {
    /// The secret.
    pub name: String,
    /// The action that failed.
    pub action: SecretAction,
    /// The source of the value, from the policy.
    pub secret_source: SecretSource,
    /// The problem with the source.
    pub problem: SecretProblem,
}

/// An action on a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAction {
    /// Fetch the value.
    Read,
    /// Write a value.
    Write,
    /// Remove the value.
    Remove,
}

/// A problem with a source or a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretProblem {
    /// The value does not exist.
    #[error("it is not there")]
    Missing,
    /// The value is empty.
    #[error("it is empty")]
    Empty,
    /// The source did not answer in time.
    #[error("it was not read within {time:?}")]
    Late {
        /// The timeout.
        time: Duration,
    },
    /// The value is longer than any key.
    #[error("it is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The value is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The path ends in a symbolic link, which could be pointed elsewhere.
    #[error("it is a symbolic link")]
    Link,
    /// The path is a folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file belongs to another user.
    #[error("it belongs to the user with the number {uid}, not to you")]
    NotOurs {
        /// Its owner.
        uid: u32,
    },
    /// The file's mode grants access to the group or to other users.
    #[error("others may open it (mode {mode:03o})")]
    Exposed {
        /// Its permission bits.
        mode: u32,
    },
    /// Environment variables can only be set before the program starts.
    #[error("the environment is not this program's to change")]
    ReadOnly,
    /// The system has no keyring, or does not let the program use it.
    #[error("the system's keyring cannot be used: {message}")]
    Keyring {
        /// The system's error.
        message: String,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SecretProblem {
    /// Whether the source may still have a value that was read before: it did not answer, or the
    /// system failed.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self, Self::Late { .. } | Self::Io(_))
    }
}

impl fmt::Display for SecretAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read from",
            Self::Write => "written to",
            Self::Remove => "removed from",
        })
    }
}

impl VaultError {
    /// The message for a model and a plugin, without a path, variable or account.
    pub fn model_message(&self) -> String {
        format!("the secret {} is not available", self.name)
    }

    /// Returns a suggested fix.
    pub fn hint(&self) -> Option<String> {
        let name = &self.name;
        let hint = match (&self.problem, &self.secret_source) {
            (SecretProblem::Missing | SecretProblem::Empty, SecretSource::Env(variable)) => {
                format!("set {variable} before you start sallyport")
            }
            (SecretProblem::Missing, _) if self.action == SecretAction::Remove => return None,
            (SecretProblem::Missing, SecretSource::Keyring { .. }) => {
                format!("run sallyport secret set {name}; {}", source::KEYRING_FORGETS)
            }
            (SecretProblem::Missing | SecretProblem::Empty, _) => {
                format!("run sallyport secret set {name}")
            }
            (SecretProblem::Exposed { .. }, SecretSource::File(path)) => {
                format!("run chmod 600 {}, and consider who may have read it", path.display())
            }
            (SecretProblem::NotOurs { .. } | SecretProblem::NotAFile, _) => {
                "name a file of your own".to_owned()
            }
            (SecretProblem::Late { .. }, _) => {
                format!(
                    "check why the source does not answer, then run sallyport secret check {name}"
                )
            }
            (SecretProblem::Link, _) => "name the file itself".to_owned(),
            (SecretProblem::ReadOnly, SecretSource::Env(variable)) => format!(
                "set {variable} before you start sallyport, or name a \"file\" or a \"keyring\" entry"
            ),
            (SecretProblem::Keyring { .. }, _) => {
                format!("name a \"file\" or an \"env\" variable in [secret.{name}]")
            }
            _ => return None,
        };
        Some(hint)
    }
}
