//! Errors of HTTP requests.

use std::{error::Error, fmt, time::Duration};

use crate::{SignIn, ToolError};

/// Why a request failed. `?` converts it into the matching [`ToolError`].
///
/// The variants contain the origin (`https://api.example`) and never the whole URL, because a query
/// may contain data that a model should not read.
///
/// ```
/// use sallyport_sdk::{ToolError, http::HttpError};
///
/// let error = HttpError::Denied { origin: "https://api.example".to_owned() };
/// assert_eq!(
///     ToolError::from(error),
///     ToolError::Denied(
///         "https://api.example may not be reached: the policy does not grant it".to_owned()
///     ),
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// The URL or a header is invalid.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The host refused the request.
    Denied {
        /// The origin of the request.
        origin: String,
    },
    /// The complete response did not arrive in time.
    Timeout {
        /// The origin of the request.
        origin: String,
        /// The timeout of the request.
        waited: Duration,
    },
    /// The response is longer than the request allows.
    TooLarge {
        /// The origin of the request.
        origin: String,
        /// The longest body that the request allows, in bytes.
        body_bytes_max: usize,
    },
    /// The service could not be reached, or the connection broke.
    Unreachable {
        /// The origin of the request.
        origin: String,
        /// What went wrong.
        reason: String,
    },
    /// The response has a status outside 200 to 299.
    Status {
        /// The status.
        status: u16,
    },
    /// The body of the response is not in the expected format.
    Body {
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { reason } => write!(f, "the request cannot be sent: {reason}"),
            Self::Denied { origin } => {
                write!(f, "{origin} may not be reached: the policy does not grant it")
            }
            Self::Timeout { origin, waited } => {
                write!(f, "{origin} did not answer within {} ms", waited.as_millis())
            }
            Self::TooLarge { origin, body_bytes_max } => {
                write!(f, "{origin} sent more than {body_bytes_max} bytes")
            }
            Self::Unreachable { origin, reason } => {
                write!(f, "{origin} could not be reached: {reason}")
            }
            Self::Status { status } => write!(f, "the service answered with status {status}"),
            Self::Body { reason } => write!(f, "the service sent an unexpected answer: {reason}"),
        }
    }
}

impl Error for HttpError {}

impl From<HttpError> for ToolError {
    fn from(error: HttpError) -> Self {
        let message = error.to_string();
        match error {
            HttpError::Denied { .. } => Self::Denied(message),
            HttpError::Status { status: 401 } => Self::AuthRequired(SignIn::new(message)),
            HttpError::Timeout { .. }
            | HttpError::Unreachable { .. }
            | HttpError::Status { status: 408 | 429 | 500.. } => Self::Unavailable(message),
            HttpError::Invalid { .. }
            | HttpError::TooLarge { .. }
            | HttpError::Status { .. }
            | HttpError::Body { .. } => Self::Failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: HttpError, kind: &str) {
        assert_eq!(ToolError::from(error).kind(), kind);
    }

    #[test]
    fn every_error_has_its_kind_for_the_model() {
        let origin = || "https://a.example".to_owned();
        let reason = || "x".to_owned();
        check(HttpError::Invalid { reason: reason() }, "failed");
        check(HttpError::Denied { origin: origin() }, "denied");
        check(HttpError::Timeout { origin: origin(), waited: Duration::ZERO }, "unavailable");
        check(HttpError::TooLarge { origin: origin(), body_bytes_max: 1 }, "failed");
        check(HttpError::Unreachable { origin: origin(), reason: reason() }, "unavailable");
        check(HttpError::Body { reason: reason() }, "failed");
        for (status, kind) in [
            (301, "failed"),
            (401, "auth-required"),
            (404, "failed"),
            (429, "unavailable"),
            (503, "unavailable"),
        ] {
            check(HttpError::Status { status }, kind);
        }
    }
}
