//! Errors of a model that gives no answer.

use std::{borrow::Cow, time::Duration};

use sallyport_contract::{PolicyFix, milliseconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why there is no answer. The messages are for the user; no message contains a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ModelError {
    /// The provider did not accept the key, or there is none.
    #[error("{provider} refused the credentials: {message}")]
    Credentials {
        /// The provider that refused.
        provider: String,
        /// The provider's message.
        message: String,
    },
    /// The connection failed.
    #[error("cannot reach {provider}: {message}")]
    Unreachable {
        /// The provider that could not be reached.
        provider: String,
        /// What went wrong.
        message: String,
    },
    /// No complete answer arrived in time.
    #[error("{provider} gave no complete answer within {time:?}")]
    TimedOut {
        /// The provider that did not answer in time.
        provider: String,
        /// The timeout.
        #[serde(rename = "time_ms", with = "milliseconds")]
        #[schemars(with = "u64")]
        time: Duration,
    },
    /// The conversation is longer than the model's context.
    #[error("the conversation is too long for {provider}: {message}")]
    TooLong {
        /// The provider that refused.
        provider: String,
        /// The provider's message.
        message: String,
    },
    /// The key's account has no credit left.
    #[error("{provider} refused because the account has no credit left: {message}")]
    Spent {
        /// The provider that refused.
        provider: String,
        /// The provider's message.
        message: String,
    },
    /// Too many requests.
    #[error("{provider} is limiting requests: {message}")]
    RateLimited {
        /// The provider that limits requests.
        provider: String,
        /// The provider's message.
        message: String,
        /// How long to wait, if the provider states it.
        #[serde(
            default,
            rename = "retry_after_ms",
            with = "milliseconds::option",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<u64>")]
        retry_after: Option<Duration>,
    },
    /// The provider answered with an error.
    #[error("{provider} answered with status {status}: {message}")]
    Refused {
        /// The provider that answered.
        provider: String,
        /// HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
        /// How long to wait before the next request, if the provider states it.
        #[serde(
            default,
            rename = "retry_after_ms",
            with = "milliseconds::option",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<u64>")]
        retry_after: Option<Duration>,
    },
    /// The answer was cut off or violates the protocol.
    #[error("the answer of {provider} is broken: {message}")]
    Broken {
        /// The provider that answered.
        provider: String,
        /// What is wrong with the answer.
        message: String,
    },
    /// A plugin that serves as the model refused this request.
    #[error("{provider} refused the request: {message}")]
    Declined {
        /// The plugin that refused.
        provider: String,
        /// The plugin's message.
        message: String,
    },
    /// A plugin that serves as the model was stopped or failed.
    #[error("{provider} gave no answer: {message}")]
    Stopped {
        /// The plugin that gave no answer.
        provider: String,
        /// What happened to the plugin.
        message: String,
    },
    /// A plugin that serves as the model lacks a permission that it needs.
    #[error("{provider} cannot answer: {message}")]
    Denied {
        /// The plugin that cannot answer.
        provider: String,
        /// What was denied, and why.
        message: String,
        /// The change to the policy that would allow it; for the user alone.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "sallyport_contract::fix::read_fix"
        )]
        fix: Option<Box<PolicyFix>>,
        /// True if the user would have been asked but no user was connected.
        nobody_to_ask: bool,
    },
}

/// Longest wait that a user at a terminal sits out.
const SHORT_WAIT_MAX: Duration = Duration::from_secs(10 * 60);

impl ModelError {
    /// Returns how the user can fix it.
    pub fn hint(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Credentials { .. } => {
                "check the key of this model; `sallyport model check` shows where it comes from"
            }
            Self::Unreachable { .. } => {
                "check the network and the address of this model with `sallyport model check`"
            }
            Self::TimedOut { .. } => {
                "ask again, or allow more time: `time_max` of the model, or the variable LLM_TIMEOUT"
            }
            Self::TooLong { .. } => {
                "start a new session or send less; in a chat, /compact summarises old turns"
            }
            Self::Spent { .. } => "add credit to the provider's account, or use another model",
            Self::RateLimited { retry_after: Some(wait), .. }
            | Self::Refused { retry_after: Some(wait), .. }
                if *wait > SHORT_WAIT_MAX =>
            {
                let wait = format_wait(*wait);
                return Cow::Owned(format!(
                    "the provider asks to wait {wait}; use another model until then"
                ));
            }
            Self::RateLimited { .. } => "wait a little, then ask again",
            Self::Refused { status: 404, .. } => {
                "check the model's name and address: `sallyport model list --remote` tells the names"
            }
            Self::Refused { status: 408 | 409 | 425 | 500.., .. } => {
                "the provider has trouble of its own: ask again later, or use another model"
            }
            Self::Refused { status: 300..=399, .. } => "check the address of this model",
            Self::Refused { .. } => "the provider's message says what it does not accept",
            Self::Declined { .. } => "check the plugin's settings and what it says",
            Self::Stopped { .. } => "see what the plugin did with `sallyport audit show`",
            Self::Denied { .. } => "the policy decides what the plugin may do",
            Self::Broken { .. } => {
                "ask again; if it happens again, the server does not speak this protocol"
            }
        })
    }
}

/// Formats a wait of minutes or more, such as `5 minutes` or `3 hours`.
fn format_wait(wait: Duration) -> String {
    let minutes = wait.as_secs().div_ceil(60);
    match minutes {
        0..120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_about_what_happened() {
        let (provider, message) = (|| "p".to_owned(), || "m".to_owned());
        let refused = |status, wait: Option<u64>| ModelError::Refused {
            provider: provider(),
            status,
            message: message(),
            retry_after: wait.map(Duration::from_secs),
        };
        let limited = |wait: Option<u64>| ModelError::RateLimited {
            provider: provider(),
            message: message(),
            retry_after: wait.map(Duration::from_secs),
        };
        let rows = [
            (refused(500, None), "trouble of its own"),
            (refused(503, Some(5)), "trouble of its own"),
            (refused(529, Some(86_400)), "24 hours"),
            (refused(404, None), "model's name"),
            (refused(400, None), "does not accept"),
            (refused(307, None), "address"),
            (limited(None), "wait a little"),
            (limited(Some(30)), "wait a little"),
            (limited(Some(3_599)), "60 minutes"),
            (limited(Some(86_400)), "24 hours"),
            (ModelError::TimedOut { provider: provider(), time: Duration::ZERO }, "LLM_TIMEOUT"),
            (ModelError::TooLong { provider: provider(), message: message() }, "/compact"),
            (ModelError::Spent { provider: provider(), message: message() }, "credit"),
        ];
        for (error, want) in rows {
            assert!(error.hint().contains(want), "{error:?}: {}", error.hint());
        }
    }
}
