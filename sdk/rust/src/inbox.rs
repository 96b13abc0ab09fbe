//! Sending input from a listener to the session.
//!
//! For plugins with the `listener` role, while the host runs them as a listener.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// Why an input was not accepted. `?` converts it into the matching [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, inbox::InboxError};
///
/// let error = InboxError::Full { reason: "64 inputs are waiting".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "unavailable");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxError {
    /// No session accepts input from this plugin.
    NotGranted,
    /// The input is empty or too long.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// Too many inputs are waiting already.
    Full {
        /// How many.
        reason: String,
    },
    /// Another error.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl fmt::Display for InboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted => f.write_str("no session takes input from this plugin"),
            Self::Invalid { reason } | Self::Full { reason } | Self::Failed { reason } => {
                write!(f, "the input is not taken: {reason}")
            }
        }
    }
}

impl Error for InboxError {}

impl From<InboxError> for ToolError {
    fn from(error: InboxError) -> Self {
        let message = error.to_string();
        match error {
            InboxError::NotGranted => Self::Denied(message),
            InboxError::Invalid { .. } => Self::InvalidArguments(message),
            InboxError::Full { .. } => Self::Unavailable(message),
            InboxError::Failed { .. } => Self::Failed(message),
        }
    }
}

/// Sends an input to the session. `origin` names its author, for the user and the model.
///
/// ```
/// use sallyport_sdk::{inbox, testing};
///
/// testing::grant([testing::Power::Inbox]);
/// inbox::submit("Is the door locked?", Some("Kim"))?;
/// let inputs = testing::submitted();
/// assert_eq!(inputs, [("Is the door locked?".to_owned(), Some("Kim".to_owned()))]);
/// # Ok::<(), inbox::InboxError>(())
/// ```
///
/// # Errors
///
/// No session accepts input from this plugin, the input is empty or too long, or too many inputs
/// are waiting.
pub fn submit(text: &str, origin: Option<&str>) -> Result<(), InboxError> {
    host::inbox::submit(text, origin)
}
