//! Secrets that the operator chose to reveal to this plugin.
//!
//! Most plugins do not need this module: the host inserts secrets into request headers, and the
//! plugin sends its requests without them. This module is for other uses, such as a signing key.
//! The manifest requests each secret by name with `reveal = true`, the policy has to grant that,
//! and every use is recorded in the audit log.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// Why a secret could not be read. `?` converts it into the matching [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, secrets::SecretError};
///
/// let error = SecretError::NotGranted { name: "pin".to_owned() };
/// assert_eq!(
///     ToolError::from(error),
///     ToolError::Denied("the secret `pin` is not shown to this plugin".to_owned()),
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretError {
    /// The secret does not exist, or the policy does not reveal it to this plugin.
    NotGranted {
        /// The requested name.
        name: String,
    },
    /// The secret is granted, but its value is not available at the moment.
    Unavailable {
        /// The requested name.
        name: String,
        /// Why not.
        reason: String,
    },
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted { name } => {
                write!(f, "the secret `{name}` is not shown to this plugin")
            }
            Self::Unavailable { name, reason } => {
                write!(f, "the secret `{name}` cannot be had: {reason}")
            }
        }
    }
}

impl Error for SecretError {}

impl From<SecretError> for ToolError {
    fn from(error: SecretError) -> Self {
        let message = error.to_string();
        match error {
            SecretError::NotGranted { .. } => Self::Denied(message),
            SecretError::Unavailable { .. } => Self::Unavailable(message),
        }
    }
}

/// Returns the value of a secret.
///
/// ```
/// use sallyport_sdk::{secrets, testing};
///
/// testing::secret("pin", "4711-0815");
/// assert_eq!(secrets::get("pin")?, "4711-0815");
/// assert!(secrets::get("other").is_err());
/// # Ok::<(), secrets::SecretError>(())
/// ```
///
/// # Errors
///
/// The secret is not revealed to this plugin, or its value is not available.
pub fn get(name: &str) -> Result<String, SecretError> {
    host::secret(name)
}
