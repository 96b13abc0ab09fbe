//! Sending input from a listener to the session.
//!
//! For plugins with the `listener` role, while the host runs them as a listener.

use std::{error::Error, fmt};

use crate::ToolError;

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
    host::submit(text, origin)
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    use super::InboxError;
    use crate::guest::{bindings::powers::sallyport::plugin::inbox as wit, message};

    pub(crate) fn submit(text: &str, origin: Option<&str>) -> Result<(), InboxError> {
        let input = wit::Input {
            text: text.to_owned(),
            attachments: Vec::new(),
            origin: origin.map(str::to_owned),
            extra: None,
        };
        Ok(wit::submit(&input)?)
    }

    impl From<wit::Error> for InboxError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::NotGranted => Self::NotGranted,
                wit::Error::Invalid(reason) => Self::Invalid { reason },
                wit::Error::Full(reason) => Self::Full { reason },
                wit::Error::Other(other) => Self::Failed { reason: message(other) },
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::cell::RefCell;

    use super::InboxError;
    use crate::testing::{Power, is_granted, nothing_in};

    thread_local! {
        static SUBMITTED: RefCell<Vec<(String, Option<String>)>> = RefCell::default();
    }

    /// Returns the inputs that listeners submitted since the last call, each with its origin.
    ///
    /// ```
    /// use sallyport_sdk::{inbox, testing};
    ///
    /// testing::grant([testing::Power::Inbox]);
    /// inbox::submit("Hello", None).unwrap();
    /// assert_eq!(testing::submitted(), [("Hello".to_owned(), None)]);
    /// ```
    pub fn submitted() -> Vec<(String, Option<String>)> {
        SUBMITTED.take()
    }

    pub(crate) fn submit(text: &str, origin: Option<&str>) -> Result<(), InboxError> {
        if !is_granted(Power::Inbox) {
            return Err(InboxError::NotGranted);
        }
        if let Some(reason) = nothing_in(text) {
            return Err(InboxError::Invalid { reason });
        }
        let input = (text.to_owned(), origin.map(str::to_owned));
        SUBMITTED.with_borrow_mut(|inputs| inputs.push(input));
        Ok(())
    }
}
