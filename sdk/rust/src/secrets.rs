//! Secrets that the operator chose to show to this plugin.
//!
//! Most plugins need none of this: a secret that goes into a header is put there by the host, and
//! the plugin sends its requests without it. What is here is for the rest, such as a key that
//! signs. The manifest requests each secret by its name with `reveal = true`, the policy has to
//! grant it so, and every use is on record.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// Why a secret could not be read; `?` turns it into the fitting [`ToolError`].
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
    /// It is not granted to be shown, or there is none of that name.
    NotGranted {
        /// The name that was asked for.
        name: String,
    },
    /// It is granted, and its value cannot be had just now.
    Unavailable {
        /// The name that was asked for.
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
/// A secret that is not shown to this plugin, or whose value cannot be had.
pub fn get(name: &str) -> Result<String, SecretError> {
    host::secret(name)
}
