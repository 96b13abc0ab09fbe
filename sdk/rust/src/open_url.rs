//! Opening pages in the user's browser.
//!
//! The manifest requests `open-url` and the policy grants it. The user is asked each time, unless
//! the policy has another rule.

use std::{error::Error, fmt};

use crate::ToolError;

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
            Self::Invalid { reason } => write!(f, "this page cannot be opened: {reason}"),
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
    host::open(url)
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    use super::{OpenUrlError, Opened};
    use crate::guest::{bindings::powers::sallyport::plugin::open_url as wit, message};

    pub(crate) fn open(url: &str) -> Result<Opened, OpenUrlError> {
        Ok(match wit::open(url)? {
            wit::Opened::Browser => Opened::Browser,
            // However it was shown, the page is not open in a browser yet.
            wit::Opened::Shown | wit::Opened::Other(_) => Opened::Shown,
        })
    }

    impl From<wit::Error> for OpenUrlError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::Denied(reason) => Self::Denied { reason },
                wit::Error::Invalid(reason) => Self::Invalid { reason },
                wit::Error::Other(other) => Self::Failed { reason: message(other) },
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::cell::RefCell;

    use super::{OpenUrlError, Opened};
    use crate::testing::{Power, is_granted};

    thread_local! {
        static OPENED: RefCell<Vec<String>> = RefCell::default();
    }

    /// Returns the addresses that were opened since the last call.
    ///
    /// ```
    /// use sallyport_sdk::{open_url, testing};
    ///
    /// testing::grant([testing::Power::OpenUrl]);
    /// open_url::open("https://example.com/").unwrap();
    /// assert_eq!(testing::opened(), ["https://example.com/"]);
    /// ```
    pub fn opened() -> Vec<String> {
        OPENED.take()
    }

    pub(crate) fn open(url: &str) -> Result<Opened, OpenUrlError> {
        if !is_granted(Power::OpenUrl) {
            let reason = "the policy does not grant it".to_owned();
            return Err(OpenUrlError::Denied { reason });
        }
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let reason = "only http and https addresses can be opened".to_owned();
            return Err(OpenUrlError::Invalid { reason });
        }
        OPENED.with_borrow_mut(|opened| opened.push(url.to_owned()));
        Ok(Opened::Browser)
    }
}
