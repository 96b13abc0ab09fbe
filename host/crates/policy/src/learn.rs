//! Learning from refusals: the smallest additions that would have let a run succeed.
//!
//! A plugin under a policy that is too narrow reveals its needs by asking for them. The needs of a
//! run become a proposal: entries for exactly the refused things, never more than the manifest
//! requests. A need that only the operator can decide, or has denied, stays open, and the proposal
//! states why.
//!
//! ```
//! use sallyport_policy::{Manifest, Policy, learn::{PluginRefusals, RefusedAccess}};
//!
//! let manifest = Manifest::parse("plugin.toml", r#"
//!     name = "clock"
//!     version = "1.0.0"
//!     description = "The time"
//!     [[request.env]]
//!     name = "TZ"
//!     why = "to know where we are"
//! "#)?;
//! let mut refusals = PluginRefusals::empty();
//! refusals.record_refusal(RefusedAccess::Env("TZ".to_owned()));
//! refusals.record_refusal(RefusedAccess::Env("HOME".to_owned()));
//! let settings = serde_json::Map::new();
//! let proposal = refusals.build_proposal(&manifest, &settings, &Policy::empty(), None);
//! assert_eq!(proposal.apply_to("")?, "[plugin.clock]\nenv = [\"TZ\"]\n");
//! assert_eq!(proposal.unresolved, [
//!     "clock may not see the environment variable \"HOME\": its manifest does not request it",
//! ]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod capabilities;
mod files;
mod refused_access;
mod requests;

use std::{collections::BTreeSet, net::IpAddr};

use sallyport_contract::{
    Decision, Denial, DenialReason, DenialSubject, PluginName, ToolId, text::escape_line,
};
use serde_json::{Map, Value};
use url::Url;

use crate::{
    Capability, FsAccess, Grant, Manifest, Policy, RuleText, SecretUse,
    addition::{GrantAddition, SecretAddition, SecretUseText},
    edit::{self, EditError},
};

/// Most needs that are kept: the operator reads the proposal, and a plugin can ask forever.
const ACCESSES_MAX: usize = 1000;

/// Longest text of a need that is kept, in bytes: the length of the longest URL that is accepted.
const ACCESS_BYTES_MAX: usize = 16 << 10;

/// Something that a plugin asked for and was refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusedAccess {
    /// A network request.
    Net {
        /// Its method.
        method: String,
        /// Its URL.
        url: Url,
        /// The refused address, if the refusal was about the address.
        to_private: Option<IpAddr>,
    },
    /// A file access.
    Path {
        /// Its path as the guest sees it.
        guest_path: String,
        /// The access that it needs.
        access: FsAccess,
    },
    /// An environment variable.
    Env(String),
    /// The value of a secret.
    Secret(String),
    /// A capability of the host.
    Capability {
        /// The capability.
        capability: Capability,
        /// What the action was about, where a grant can name it: a page, a package.
        item: Option<String>,
    },
    /// A call of a tool.
    Call(ToolId),
}

/// The refusals of one plugin in a run.
#[derive(Debug, Clone)]
pub struct PluginRefusals {
    accesses: BTreeSet<RefusedAccess>,
    dropped: usize,
}

/// The smallest additions that would have let a run succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProposal {
    /// The plugin that it is for.
    pub plugin: PluginName,
    /// The grants to add.
    pub additions: Vec<GrantAddition>,
    /// The rules that let tools run without asking.
    pub rules: Vec<RuleText>,
    /// The needs that it leaves to the operator, one sentence each. The sentences contain guest
    /// paths and URLs.
    pub unresolved: Vec<String>,
}

/// The result for one need: `None` if the policy allows it by now, something to add, or the refusal
/// that leaves it to the operator.
type AdditionResult<T> = Result<Option<T>, Denial>;

impl PluginRefusals {
    /// Returns an empty collection.
    pub fn empty() -> Self {
        Self { accesses: BTreeSet::new(), dropped: 0 }
    }

    /// Records a refusal. The query of a URL is dropped, because no policy matches it and it may
    /// contain secrets.
    pub fn record_refusal(&mut self, refused_access: RefusedAccess) {
        let refused_access = refused_access.without_query();
        if self.accesses.contains(&refused_access) {
            return;
        }
        if self.accesses.len() == ACCESSES_MAX || refused_access.text_bytes() > ACCESS_BYTES_MAX {
            self.dropped += 1;
        } else {
            self.accesses.insert(refused_access);
        }
    }

    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.dropped == 0
    }

    /// The refusals, in a fixed order.
    pub fn refused_accesses(&self) -> impl Iterator<Item = &RefusedAccess> {
        self.accesses.iter()
    }

    /// Returns the smallest additions to the policy, and the needs that cannot be decided here.
    ///
    /// `settings` are the plugin's own, as for [`Policy::effective_grant`]. With a digest, the
    /// rules apply only to the component with that digest.
    pub fn build_proposal(
        &self,
        manifest: &Manifest,
        settings: &Map<String, Value>,
        policy: &Policy,
        digest: Option<&str>,
    ) -> PolicyProposal {
        let grant = &policy.effective_grant(manifest, settings);
        let mut unresolved = Vec::new();
        let mut additions =
            requests::net_additions(self, manifest, settings, grant, &mut unresolved);
        additions.extend(files::file_additions(self, manifest, grant, &mut unresolved));
        let mut rules = Vec::new();
        for refused_access in &self.accesses {
            match refused_access {
                // Handled together above.
                RefusedAccess::Net { .. } | RefusedAccess::Path { .. } => {}
                RefusedAccess::Env(name) => add_or_leave_open(
                    env_addition(name, manifest, grant),
                    &mut additions,
                    &mut unresolved,
                ),
                RefusedAccess::Secret(name) => add_or_leave_open(
                    secret_addition(name, policy, grant),
                    &mut additions,
                    &mut unresolved,
                ),
                RefusedAccess::Capability { capability, item: None } => {
                    match capabilities::capability_additions(*capability, grant) {
                        Ok(found) => additions.extend(found),
                        Err(denial) => leave_open(&denial, &mut unresolved),
                    }
                }
                RefusedAccess::Capability { capability, item: Some(item) } => {
                    let addition_result = grant.item_addition(*capability, item);
                    add_or_leave_open(addition_result, &mut additions, &mut unresolved);
                }
                RefusedAccess::Call(tool) => add_or_leave_open(
                    call_rule(tool, policy, grant, digest),
                    &mut rules,
                    &mut unresolved,
                ),
            }
        }
        if self.dropped > 0 {
            unresolved.push(format!("{} more refusals were left out", self.dropped));
        }
        PolicyProposal { plugin: manifest.name.clone(), additions, rules, unresolved }
    }
}

impl PolicyProposal {
    /// Returns the text of a policy file with the proposal added.
    ///
    /// # Errors
    ///
    /// The text cannot be edited.
    pub fn apply_to(&self, text: &str) -> Result<String, EditError> {
        let add = |text: String, addition| edit::add_grant(&text, &self.plugin, addition);
        let text = self.additions.iter().try_fold(text.to_owned(), add)?;
        self.rules.iter().try_fold(text, |text, rule| edit::add_rule(&text, rule))
    }
}

impl RefusedAccess {
    fn without_query(mut self) -> Self {
        if let Self::Net { url, .. } = &mut self {
            url.set_query(None);
            url.set_fragment(None);
        }
        self
    }

    fn text_bytes(&self) -> usize {
        match self {
            Self::Net { method, url, .. } => method.len() + url.as_str().len(),
            Self::Path { guest_path: text, .. } | Self::Env(text) | Self::Secret(text) => {
                text.len()
            }
            Self::Capability { item, .. } => item.as_ref().map_or(0, String::len),
            // The types of names are bounded already.
            Self::Call(_) => 0,
        }
    }
}

/// Adds the result of a need to the additions or to the open needs.
fn add_or_leave_open<T>(
    addition_result: AdditionResult<T>,
    found: &mut Vec<T>,
    unresolved: &mut Vec<String>,
) {
    match addition_result {
        Ok(proposed) => found.extend(proposed),
        Err(denial) => leave_open(&denial, unresolved),
    }
}

/// Leaves a need to the operator, without duplicates.
fn leave_open(denial: &Denial, unresolved: &mut Vec<String>) {
    let sentence = escape_line(&denial.to_string());
    if !unresolved.contains(&sentence) {
        unresolved.push(sentence);
    }
}

fn env_addition(name: &str, manifest: &Manifest, grant: &Grant) -> AdditionResult<GrantAddition> {
    if grant.env().iter().any(|granted| granted == name) {
        return Ok(None);
    }
    match manifest.request.env.iter().any(|request| request.name == name) {
        true => Ok(Some(GrantAddition::Env(name.to_owned()))),
        false => {
            let (plugin, name) = (grant.plugin().clone(), name.to_owned());
            let reason = DenialReason::NotRequested { capability: None };
            Err(Denial::new(DenialSubject::Variable { plugin, name }, reason))
        }
    }
}

fn secret_addition(name: &str, policy: &Policy, grant: &Grant) -> AdditionResult<GrantAddition> {
    let is_read = |granted: &&crate::SecretGrant| {
        granted.name.as_str() == name && granted.usage == SecretUse::Reveal
    };
    if grant.secrets().iter().any(|granted| is_read(&granted)) {
        return Ok(None);
    }
    let denial = grant.deny_secret(name);
    let has_source = name.parse().is_ok_and(|name| policy.secret_source(&name).is_some());
    match (&denial.fix, has_source) {
        (None, _) => Err(denial),
        (Some(_), false) => {
            let reason = format!("no policy says where it is: add [secret.{name}]");
            Err(Denial { reason: reason.into(), fix: None, ..denial })
        }
        (Some(_), true) => {
            let (name, usage) = (name.to_owned(), SecretUseText::Reveal);
            Ok(Some(GrantAddition::Secret(SecretAddition { name, usage })))
        }
    }
}

fn call_rule(
    tool: &ToolId,
    policy: &Policy,
    grant: &Grant,
    digest: Option<&str>,
) -> AdditionResult<RuleText> {
    if tool.plugin != *grant.plugin() {
        let subject = format!("{} may not call {tool}", grant.plugin());
        return Err(Denial::new(subject, "the tool belongs to another plugin"));
    }
    let verdict = policy.expected_verdict(tool, digest.unwrap_or_default(), grant);
    if verdict.rule.is_some() && verdict.decision == Decision::Allow {
        return Ok(None);
    }
    verdict.allowing_rule(tool, digest).map(Some).ok_or_else(|| verdict.to_denial(tool))
}
