//! Pages in the user's browser.
//!
//! The manifest requests `open-url` and the policy grants it. The person is asked each time unless
//! the policy says otherwise.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// What came of it.
///
/// ```
/// use sallyport_sdk::{open_url::{self, Opened}, testing};
///
/// testing::grant([testing::Power::OpenUrl]);
/// assert_eq!(open_url::open("https://example.com/"), Ok(Opened::Browser));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The browser has it.
    Browser,
    /// There is no browser here; the person was shown the address.
    Shown,
}

/// Why a page was not opened; `?` turns it into the fitting [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, open_url::OpenUrlError};
///
/// let error = OpenUrlError::Denied { reason: "the user said no".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "denied");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenUrlError {
    /// It is not granted to this plugin, or the person said no.
    Denied {
        /// Why.
        reason: String,
    },
    /// It is no http or https address.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// Something else went wrong.
    Failed {
        /// What.
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

/// Opens an http or https address in the user's browser.
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
/// No grant, a person who says no, an address of another kind.
pub fn open(url: &str) -> Result<Opened, OpenUrlError> {
    host::open_url::open(url)
}
