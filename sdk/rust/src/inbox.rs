//! The way from a listener into the session.
//!
//! For plugins with the role `listener`, while the host runs them as one.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// Why an input was not taken; `?` turns it into the fitting [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, inbox::InboxError};
///
/// let error = InboxError::Full { reason: "64 inputs are waiting".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "unavailable");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxError {
    /// No session takes input from this plugin.
    NotGranted,
    /// It is empty or too long.
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// Too much waits already.
    Full {
        /// How much.
        reason: String,
    },
    /// Something else went wrong.
    Failed {
        /// What.
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

/// Hands an input to the session. `origin` says whose words they are, for people and the model.
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
/// No session that listens, an input that is empty or too long, too much that waits.
pub fn submit(text: &str, origin: Option<&str>) -> Result<(), InboxError> {
    host::inbox::submit(text, origin)
}
