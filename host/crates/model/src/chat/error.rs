//! Why a model gave no answer.

use std::time::Duration;

/// Why there is no answer. The texts are for the person; no key ever stands in one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider did not accept the key, or there is none.
    #[error("{provider} refused the credentials: {message}")]
    Credentials {
        /// Who refused.
        provider: String,
        /// What it said.
        message: String,
    },
    /// No connection, or none in time.
    #[error("cannot reach {provider}: {message}")]
    Unreachable {
        /// Who could not be reached.
        provider: String,
        /// What went wrong.
        message: String,
    },
    /// Too many requests; `retry_after` when the provider said how long to wait.
    #[error("{provider} is limiting requests: {message}")]
    RateLimited {
        /// Who limits.
        provider: String,
        /// What it said.
        message: String,
        /// How long to wait.
        retry_after: Option<Duration>,
    },
    /// The provider answered with an error.
    #[error("{provider} answered with status {status}: {message}")]
    Refused {
        /// Who answered.
        provider: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        message: String,
        /// How long to wait before asking again, when it said so.
        retry_after: Option<Duration>,
    },
    /// The answer ended before its end, or is not what the protocol says.
    #[error("the answer of {provider} is broken: {message}")]
    Broken {
        /// Who answered.
        provider: String,
        /// What is wrong with it.
        message: String,
    },
}

impl ModelError {
    /// What the person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Credentials { .. } => {
                "check the key of this model: `sallyport model check` tells where it comes from"
            }
            Self::Unreachable { .. } => {
                "check the address of this model and the network: `sallyport model check` tells more"
            }
            Self::RateLimited { .. } => "wait a little, then ask again",
            Self::Refused { .. } => "check the model's name and the provider's message",
            Self::Broken { .. } => {
                "ask again; if it stays, the server does not speak this protocol"
            }
        }
    }
}
