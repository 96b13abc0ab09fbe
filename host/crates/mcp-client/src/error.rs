//! Why a server gave no answer.

use std::time::Duration;

/// Longest text of a server in a message, in characters.
pub(crate) const SERVER_TEXT_CHARS_MAX: usize = 2000;

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// It was not ready in time.
    #[error("it did not answer within {0:?}")]
    NotReady(Duration),
    /// It lists too many tools.
    #[error("it lists more than {0} tools")]
    TooManyTools(usize),
    /// Its list of tools is too long.
    #[error("its list of tools has more than {0} bytes")]
    ToolListTooLong(usize),
    /// It refused a request, in its own words.
    #[error("it refused the request: {message}")]
    Refused {
        /// Its words, made safe to show.
        message: String,
        /// Whether it reports that the arguments are wrong.
        is_about_arguments: bool,
    },
    /// Its answer is not one to the request, or needs something that is not offered.
    #[error("its answer cannot be used: {0}")]
    BadAnswer(String),
    /// It requires a token, or another one. The text is its `WWW-Authenticate`.
    #[error("it requires a sign-in")]
    SignInRequired(String),
    /// The token does not have these permissions, which are separated by blanks.
    #[error("the account lacks the permission {0:?}")]
    PermissionMissing(String),
    /// Nothing can be sent to it.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(String),
}
