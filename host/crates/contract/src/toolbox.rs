//! The traits between the parts of the host.
//!
//! Every source of tools is a [`Toolbox`]. The lower crates reach outside themselves through a
//! trait in this module, and the composition root supplies the implementation: a terminal, a
//! database, or three lines in a test.

use std::{io, net::IpAddr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    boxed_future::BoxFuture,
    call::{Admission, RequestedCall},
    form::{FormAnswer, FormQuestion},
    grant_question::{GrantAnswer, GrantChoice, GrantQuestion, GrantScope},
    outcome::CallReport,
    preview::RequestPreview,
    tool::ToolDescriptor,
};

/// A source of tools.
///
/// A call takes two steps, so that a session can collect every decision of a turn before the first
/// tool runs: [`admit_call`](Toolbox::admit_call) checks and asks, [`Admission::run_call`] executes.
pub trait Toolbox: Send + Sync {
    /// Returns all tools of this moment, in a stable order.
    fn tools(&self) -> Arc<[ToolDescriptor]>;

    /// Checks that the tool exists, that the arguments fit and that policy (and the user, where
    /// policy asks) agrees. A refusal is a finished report. The admission owns everything that the
    /// run needs, so it outlives the toolbox and any change of its tools.
    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>>;
}

/// The decision of a policy about an access. The strictest of several matching rules wins, so the
/// order of the variants matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Allows the access.
    Allow,
    /// Asks the user.
    Ask,
    /// Denies the access.
    Deny,
}

impl Decision {
    /// Returns the word for it in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The details that the user sees before they answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// The call, with the arguments that would be used, or that are being used.
    #[serde(flatten)]
    pub call: RequestedCall,
    /// The subject of the question.
    #[serde(flatten)]
    pub subject: ApprovalSubject,
    /// The outgoing request, when the question is about one. Only the user sees it; records keep
    /// nothing of it.
    #[serde(default, with = "shared_preview", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RequestPreview>")]
    pub request: Option<Arc<RequestPreview>>,
    /// Version of the plugin, from its manifest.
    pub plugin_version: String,
    /// Digest of the component that would run, in hexadecimal.
    pub plugin_digest: String,
    /// Why the user is asked: a rule with its place, or the default and its reason.
    pub reason: String,
    /// What [`ApprovalAnswer::Always`] would write: the text of a rule, or, for a grant, the change
    /// to the policy as the lines of a diff. `None` when a policy rule asks, which no other rule can
    /// soften, or when the policy cannot be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What the plugin could do with its present grants, one sentence each.
    pub capabilities: Vec<String>,
}

/// Writes a preview as itself, although it is shared.
mod shared_preview {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::RequestPreview;

    pub(super) fn serialize<S: Serializer>(
        preview: &Option<Arc<RequestPreview>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        preview.as_deref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<RequestPreview>>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Arc::new))
    }
}

/// The subject of a question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subject", rename_all = "kebab-case")]
pub enum ApprovalSubject {
    /// Making the call at all.
    Call,
    /// An access that the running call needs; the call waits for the answer.
    Access {
        /// The action in the form that records use: `GET https://api.open-meteo.com/v1/forecast`.
        what: String,
    },
    /// A grant that the running call lacks; the call waits for the answer.
    Grant(GrantQuestion),
    /// A question that the plugin's server asks during the call, which waits for the answer.
    Form(FormQuestion),
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ApprovalAnswer {
    /// Yes, to this one.
    Once,
    /// Yes, and to the same question for the rest of the session.
    Session,
    /// Yes, and write the displayed rule or grant into the policy.
    Always,
    /// Yes to a choice of a question about a grant. The answers above mean its first choice.
    Grant(GrantAnswer),
    /// The values for a question of a server. Without fields, [`Self::Once`] means the same.
    Form(FormAnswer),
    /// No, perhaps with a reason for the model.
    No {
        /// The user's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// No user is connected.
    Nobody,
}

impl ApprovalRequest {
    /// The question about a missing grant, if it is one.
    pub fn grant_question(&self) -> Option<&GrantQuestion> {
        match &self.subject {
            ApprovalSubject::Grant(question) => Some(question),
            ApprovalSubject::Call | ApprovalSubject::Access { .. } | ApprovalSubject::Form(_) => {
                None
            }
        }
    }

    /// The question of a server, if it is one.
    pub fn form_question(&self) -> Option<&FormQuestion> {
        match &self.subject {
            ApprovalSubject::Form(question) => Some(question),
            ApprovalSubject::Call | ApprovalSubject::Access { .. } | ApprovalSubject::Grant(_) => {
                None
            }
        }
    }

    /// Whether a yes has to bring something that the user types: a folder, or the values of a form.
    /// A front end that cannot read it has nobody to answer the question.
    pub fn needs_input(&self) -> bool {
        self.needs_folder() || self.form_question().is_some_and(FormQuestion::needs_values)
    }

    /// Whether a yes has to name a folder.
    pub fn needs_folder(&self) -> bool {
        let first = self.grant_question().and_then(|question| question.choices.first());
        first.is_some_and(GrantChoice::needs_folder)
    }
}

impl ApprovalAnswer {
    /// Returns true for a yes of any scope.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Once | Self::Session | Self::Always | Self::Grant(_) | Self::Form(_))
    }

    /// The answer without the values that a user filled in, for records.
    #[must_use]
    pub fn without_values(&self) -> Self {
        match self {
            Self::Form(_) => Self::Once,
            other => other.clone(),
        }
    }

    /// Returns the grant that the answer gives in reply to a question about one.
    pub fn grant(&self) -> Option<GrantAnswer> {
        let first = |scope| Some(GrantAnswer { scope, choice: 0, folder: None });
        match self {
            Self::Once => first(GrantScope::Once),
            Self::Session => first(GrantScope::Session),
            Self::Always => first(GrantScope::Always),
            Self::Grant(answer) => Some(answer.clone()),
            Self::Form(_) | Self::No { .. } | Self::Nobody => None,
        }
    }
}

/// Asks the user.
pub trait Consent: Send + Sync {
    /// Shows the request and waits for the answer.
    fn ask_user(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer>;
}

/// Turns a host name into addresses.
pub trait HostNameResolver: Send + Sync {
    /// Looks up all addresses of a name.
    ///
    /// # Errors
    ///
    /// The name does not exist or the look-up failed.
    fn resolve_host<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}
