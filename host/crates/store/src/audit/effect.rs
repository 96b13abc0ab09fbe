//! The effects of a call outside its own memory, in the form that is stored.

use sallyport_contract::{Effect, FixGrant, UserAnswer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a call did or tried to do. The texts are untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "did", rename_all = "kebab-case")]
pub enum AuditEffect {
    /// A request left the host.
    Requested {
        /// Method and URL without its query.
        what: String,
        /// The status of the response; absent when the exchange failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Bytes of the body that was sent.
        sent_bytes: u64,
        /// Bytes of the body that was received.
        received_bytes: u64,
    },
    /// A file or folder was created, opened for writing, renamed or removed.
    Changed {
        /// Its path as the guest sees it.
        path: String,
    },
    /// A secret was used for the plugin, or given to it.
    SecretUsed {
        /// Its name, never its value.
        name: String,
        /// Where it was sent; absent when the guest itself received it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// The user was asked while the call ran.
    Asked {
        /// What the question was about.
        what: String,
        /// The answer.
        answer: String,
    },
    /// The user was asked for a grant that the call lacked.
    GrantAnswered {
        /// What the call was refused.
        what: String,
        /// The answer.
        answer: UserAnswer,
        /// The grants that the user gave; none after a no.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<AuditGrant>,
    },
    /// Something was done through a capability of the host.
    Used {
        /// The capability, as policies name it.
        capability: String,
        /// What was done.
        what: String,
    },
    /// The gate refused a host call.
    Refused {
        /// What was refused.
        what: String,
        /// Why.
        why: String,
    },
    /// Further effects were left out to keep the record within its size limit.
    LeftOut {
        /// How many.
        effects: u64,
    },
}

/// An entry that the user granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditGrant {
    /// The key of the plugin's table: `net`, `fs`, `secrets`, a capability.
    pub key: String,
    /// The entry as a TOML value.
    pub entry: String,
}

impl From<FixGrant> for AuditGrant {
    fn from(FixGrant { key, entry, flags: _ }: FixGrant) -> Self {
        Self { key, entry }
    }
}

impl AuditEffect {
    /// Converts an effect to the stored form; `None` for log messages of the plugin.
    pub fn from_effect(effect: &Effect) -> Option<Self> {
        Some(match effect.clone() {
            Effect::Logged { .. } => return None,
            Effect::Requested { what, status, sent_bytes, received_bytes } => {
                Self::Requested { what, status, sent_bytes, received_bytes }
            }
            Effect::Changed { path } => Self::Changed { path },
            Effect::SecretUsed { name, to } => Self::SecretUsed { name, to },
            Effect::Asked { what, answer } => Self::Asked { what, answer },
            Effect::GrantAnswered { what, answer, grants } => {
                let grants = grants.into_iter().map(AuditGrant::from).collect();
                Self::GrantAnswered { what, answer, grants }
            }
            Effect::Used { capability, what } => Self::Used { capability, what },
            Effect::Refused(denial) => {
                Self::Refused { what: denial.subject.to_string(), why: denial.reason.to_string() }
            }
        })
    }

    /// Total bytes that the effects sent and received.
    pub(super) fn traffic_bytes(effects: &[Self]) -> (u64, u64) {
        effects.iter().fold((0, 0), |(sent, received), effect| match effect {
            Self::Requested { sent_bytes, received_bytes, .. } => {
                (sent.saturating_add(*sent_bytes), received.saturating_add(*received_bytes))
            }
            _ => (sent, received),
        })
    }

    /// The texts of the effect.
    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        let (first, second) = match self {
            Self::GrantAnswered { what, grants, .. } => {
                let entries = grants.iter_mut().map(|grant| &mut grant.entry);
                return [what].into_iter().chain(entries).collect();
            }
            Self::Requested { what, .. } => (Some(what), None),
            Self::Changed { path } => (Some(path), None),
            Self::SecretUsed { name, to } => (Some(name), to.as_mut()),
            Self::Asked { what, answer } => (Some(what), Some(answer)),
            Self::Used { capability, what } => (Some(capability), Some(what)),
            Self::Refused { what, why } => (Some(what), Some(why)),
            Self::LeftOut { .. } => (None, None),
        };
        first.into_iter().chain(second).collect()
    }
}
