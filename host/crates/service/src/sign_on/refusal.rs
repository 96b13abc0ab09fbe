//! Why a log-in at the identity server fails.

use ::http::StatusCode;

/// Why a log-in fails. No text has a code or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SignOnRefusal {
    /// No log-in has this state: it was never begun, or is over.
    #[error("this log-in is over, or was never begun here")]
    UnknownState,
    /// Another browser began the log-in.
    #[error("another browser or tab began this log-in")]
    OtherBrowser,
    /// The user took too long.
    #[error("the log-in took longer than 10 minutes")]
    TooLate,
    /// The answer has neither a code nor an error, or has one twice.
    #[error("the answer of the identity server is not understood")]
    NoAnswer,
    /// The answer is from another server than the one that was asked.
    #[error("the answer is not from the identity server that was asked")]
    OtherIssuer,
    /// The identity server, or the user there, refused.
    #[error("the identity server refused: {0}")]
    ByServer(String),
    /// The identity server cannot be used.
    #[error("the identity server cannot be used: {0}")]
    Unavailable(String),
    /// The ID token is not one for this log-in.
    #[error("the ID token was refused: {0}")]
    BadToken(&'static str),
    /// The claim that names the user is missing or is no name.
    #[error("the identity server gives no usable name: the claim {claim:?} {problem}")]
    NoName {
        /// The claim.
        claim: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// None of the user's groups has a role.
    #[error("the user {user} has no role here, because none of their groups has one")]
    NoRole {
        /// The name of the user.
        user: String,
    },
    /// The operator has blocked the user, or nobody knows whether they have.
    #[error("the user {user} may not log in here")]
    Blocked {
        /// The name of the user.
        user: String,
    },
    /// Too many users have logged in since the start.
    #[error("too many users have logged in since the service started")]
    TooManyUsers,
    /// The user's groups cannot be stored, so nobody would know which rules are about the user.
    #[error("the user's groups cannot be stored now")]
    GroupsNotStored,
    /// The system gives no random numbers.
    #[error("the system has no random bytes for a log-in")]
    NoRandom,
}

impl SignOnRefusal {
    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::UnknownState | Self::OtherBrowser | Self::TooLate | Self::NoAnswer => {
                StatusCode::BAD_REQUEST
            }
            Self::OtherIssuer | Self::ByServer(_) | Self::BadToken(_) => StatusCode::UNAUTHORIZED,
            Self::NoName { .. } | Self::NoRole { .. } | Self::Blocked { .. } => {
                StatusCode::FORBIDDEN
            }
            Self::Unavailable(_) | Self::TooManyUsers | Self::GroupsNotStored => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NoRandom => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What the user can do.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::UnknownState | Self::TooLate | Self::NoAnswer | Self::ByServer(_) => {
                "Log in again."
            }
            Self::OtherBrowser => {
                "Log in again, and stay in one tab of the browser that you begin with."
            }
            Self::OtherIssuer | Self::BadToken(_) => {
                "Log in again. If it fails again, tell the operator of the service."
            }
            Self::Blocked { .. } => "Ask the operator of the service.",
            Self::NoName { .. } | Self::NoRole { .. } => {
                "The operator of the service decides who may log in: see [login] in sallyport.toml."
            }
            Self::Unavailable(_) | Self::TooManyUsers | Self::GroupsNotStored | Self::NoRandom => {
                "Try again in a minute. If it fails again, tell the operator of the service."
            }
        }
    }

    /// Whether it counts as an attempt of someone who should not get in.
    pub(crate) fn is_failed_attempt(&self) -> bool {
        match self {
            Self::UnknownState
            | Self::OtherBrowser
            | Self::NoAnswer
            | Self::OtherIssuer
            | Self::BadToken(_)
            | Self::NoName { .. }
            | Self::NoRole { .. }
            | Self::Blocked { .. } => true,
            Self::TooLate
            | Self::ByServer(_)
            | Self::Unavailable(_)
            | Self::TooManyUsers
            | Self::GroupsNotStored
            | Self::NoRandom => false,
        }
    }
}
