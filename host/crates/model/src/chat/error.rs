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
    /// A plugin stands for the model, and refuses this request.
    #[error("{provider} refused the request: {message}")]
    Declined {
        /// Who refused.
        provider: String,
        /// What it said.
        message: String,
    },
    /// A plugin stands for the model, and was stopped or broke.
    #[error("{provider} gave no answer: {message}")]
    Stopped {
        /// Who gave none.
        provider: String,
        /// What happened to it.
        message: String,
    },
    /// A plugin stands for the model, and is not allowed what it needs.
    #[error("{provider} cannot answer: {message}")]
    Denied {
        /// Who cannot.
        provider: String,
        /// What it was denied, and why.
        message: String,
        /// The policy text that would lift it; for the person alone.
        fix: Option<String>,
        /// Somebody would have been asked, and nobody was there.
        nobody_to_ask: bool,
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
            Self::Declined { .. } => "check the plugin's settings and what it says",
            Self::Stopped { .. } => "`sallyport audit show` tells what the plugin did",
            Self::Denied { .. } => "the policy decides what the plugin may do",
            Self::Broken { .. } => {
                "ask again; if it stays, the server does not speak this protocol"
            }
        }
    }
}
