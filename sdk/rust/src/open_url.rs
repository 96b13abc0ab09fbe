//! Opening pages in the user's browser.
//!
//! The manifest requests `open-url` and the policy grants it. The user is asked each time, unless
//! the policy has another rule.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// How an address was opened.
///
/// ```
/// use sallyport_sdk::{open_url::{self, Opened}, testing};
///
/// testing::grant([testing::Power::OpenUrl]);
/// assert_eq!(open_url::open("https://example.com/"), Ok(Opened::Browser));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The browser received the address.
    Browser,
    /// No browser is available. The address was shown to the user.
    Shown,
}

/// Why a page was not opened. `?` converts it into the matching [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, open_url::OpenUrlError};
///
/// let error = OpenUrlError::Denied { reason: "the user said no".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "denied");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenUrlError {
    /// The policy does not grant it to this plugin, or the user declined.
    Denied {
        /// Why.
        reason: String,
    },
    /// The address is not an http or https URL.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// Another error.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl fmt::Display for OpenUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { reason } => write!(f, "the page may not be opened: {reason}"),
            Self::Invalid { reason } => write!(f, "this is no page that can be opened: {reason}"),
            Self::Failed { reason } => write!(f, "the page was not opened: {reason}"),
        }
    }
}

impl Error for OpenUrlError {}

impl From<OpenUrlError> for ToolError {
    fn from(error: OpenUrlError) -> Self {
        let message = error.to_string();
        match error {
            OpenUrlError::Denied { .. } => Self::Denied(message),
            OpenUrlError::Invalid { .. } => Self::InvalidArguments(message),
            OpenUrlError::Failed { .. } => Self::Failed(message),
        }
    }
}

/// Opens an http or https URL in the user's browser.
///
/// ```
/// use sallyport_sdk::{open_url, testing};
///
/// assert!(open_url::open("https://example.com/").is_err());
///
/// testing::grant([testing::Power::OpenUrl]);
/// open_url::open("https://example.com/")?;
/// assert_eq!(testing::opened(), ["https://example.com/"]);
/// # Ok::<(), open_url::OpenUrlError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `open-url`, the user declined, or the URL has another scheme.
pub fn open(url: &str) -> Result<Opened, OpenUrlError> {
    host::open_url::open(url)
}
