//! The few traits between the parts.
//!
//! Every source of tools is a [`Toolbox`]. The lower crates ask for anything outside themselves
//! through a trait of this file, and the composition root decides what answers: a terminal, a
//! database, or three lines in a test.

use std::{future::Future, io, net::IpAddr, pin::Pin, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    call::{Admitted, ToolCall},
    outcome::CallReport,
    preview::RequestPreview,
    tool::ToolSpec,
};

/// A boxed future, so that the traits here can be used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of tools.
///
/// A call goes through two steps, so that a session can collect every decision of a turn before
/// the first tool runs: [`admit`](Toolbox::admit) checks and asks, [`run`](Toolbox::run) executes.
pub trait Toolbox: Send + Sync {
    /// All tools, in a stable order.
    fn tools(&self) -> &[ToolSpec];

    /// Checks that the tool exists, that the arguments fit and that policy (and, where it says so,
    /// the person) agrees. A refusal is a finished report.
    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>>;

    /// Runs an admitted call. Dropping the future cancels the call.
    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport>;
}

/// What policy says about an access. When several rules match, the strictest wins, so the order of
/// the variants matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// A person decides.
    Ask,
    /// No.
    Deny,
}

impl Decision {
    /// The word that policies use for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What a person is shown before they say yes or no.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// The call, with the arguments that would be used, or that are being used.
    pub call: ToolCall,
    /// What the question is about.
    pub subject: Subject,
    /// What would leave, when something is reached for. It is for the eyes of the person alone, since
    /// records keep nothing of it.
    pub request: Option<Arc<RequestPreview>>,
    /// Version of the plugin, as its manifest says.
    pub plugin_version: String,
    /// Digest of the component that would run, in hexadecimal.
    pub plugin_digest: String,
    /// Why somebody has to be asked: a rule with its place, or the default and its reason.
    pub reason: String,
    /// The policy text that [`Answer::Always`] would write; `None` when a rule of the policy asks,
    /// which no other rule can soften.
    pub rule: Option<String>,
    /// What the plugin could do with its present grants, one sentence each.
    pub powers: Vec<String>,
}

/// What a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Making the call at all.
    Call,
    /// Something that the running call reaches for; it waits for the answer.
    Access {
        /// The act, as records name it: `GET https://api.open-meteo.com/v1/forecast`.
        what: String,
    },
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, to this one.
    Once,
    /// Yes, and to the same question for the rest of the session.
    Session,
    /// Yes, and the rule that was shown is to be written into the policy.
    Always,
    /// No, perhaps with a reason for the model.
    No {
        /// The person's own words.
        reason: Option<String>,
    },
    /// There is nobody to ask.
    Nobody,
}

impl Answer {
    /// Whether it is a yes of any reach.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Once | Self::Session | Self::Always)
    }
}

/// Asks the person.
pub trait Consent: Send + Sync {
    /// Shows the request and waits for the answer.
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Answer>;
}

/// Turns a host name into addresses.
pub trait Resolver: Send + Sync {
    /// Looks up all addresses of a name.
    ///
    /// # Errors
    ///
    /// The name does not exist or the look-up failed.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}
