//! The permissions of plugins at a glance: what each may reach, which of its tools run without
//! asking, what it lacks, and whether it can work.

use std::path::{Path, PathBuf};

use sallyport_contract::{Decision, PluginName, ToolId};
use sallyport_policy::{Capability, FsMount, Grant, Policy, UngrantedRequest};
use schemars::JsonSchema;
use serde::Serialize;

use crate::registry::{PluginAvailability, RegisteredPlugin, Registry};

/// Returns the granted folders and files that do not exist at the moment. No call of the plugin can
/// run without them.
pub fn missing_paths(grant: &Grant) -> impl Iterator<Item = &FsMount> {
    grant.fs().iter().filter(|mount| is_missing(&mount.host))
}

/// Whether nothing exists at a path of the host. What cannot be looked at may exist.
pub fn is_missing(path: &Path) -> bool {
    path.try_exists().is_ok_and(|exists| !exists)
}

/// The permissions of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginPermissions {
    /// Its name.
    pub plugin: PluginName,
    /// Whether it can work.
    pub works: PluginReadiness,
    /// The expected decision about each tool.
    pub tools: ToolDecisions,
    /// The requests that it may send, one pattern each.
    pub net: Vec<String>,
    /// The folders and files that it sees.
    pub files: Vec<FilePermission>,
    /// The variables that it may read.
    pub variables: Vec<String>,
    /// The names of the secrets that it may use.
    pub secrets: Vec<String>,
    /// The other capabilities that it holds.
    pub capabilities: Vec<&'static str>,
    /// What it requests and is not granted.
    pub missing: Vec<MissingRequest>,
}

/// Whether a plugin can work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum PluginReadiness {
    /// It has all that it needs.
    Ready,
    /// It can be called, but calls that use what it lacks are refused.
    Limited,
    /// It cannot be called.
    Unusable {
        /// Why.
        reason: String,
    },
}

/// A folder or file that a plugin sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilePermission {
    /// What it may do there.
    pub access: &'static str,
    /// The path on the host.
    pub path: PathBuf,
    /// The path as the plugin sees it.
    pub seen_as: String,
}

/// The expected decision about each tool, before its arguments are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolDecisions {
    /// The tools that run without asking.
    pub allow: Vec<String>,
    /// The tools that ask.
    pub ask: Vec<String>,
    /// The tools that are denied.
    pub deny: Vec<String>,
}

/// A request of a plugin that is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingRequest {
    /// The requested thing, in a few words.
    pub request: String,
    /// Whether calls that use it are refused.
    needed: bool,
    /// The entry of the policy that denies it, if one does.
    denied_at: Option<String>,
    /// The flags of `policy grant` that grant it.
    grant: Option<String>,
}

/// Returns the permissions of every plugin of a registry, in its order.
pub fn all_permissions(registry: &Registry) -> Vec<PluginPermissions> {
    let policy = registry.gate().policy_store.current().policy;
    registry.entries().map(|entry| PluginPermissions::new(entry, &policy)).collect()
}

/// Returns the likely decision about calls of a tool, before their arguments are known, with the
/// reason.
pub fn likely_decision(
    entry: &RegisteredPlugin,
    policy: &Policy,
    tool: &ToolId,
) -> (Decision, String) {
    match entry.unconditional_denial() {
        Some(denial) => (Decision::Deny, denial.reason.to_string()),
        None => {
            let verdict = policy.expected_verdict(tool, entry.digest(), &entry.grant());
            (verdict.decision, verdict.reason)
        }
    }
}

impl PluginPermissions {
    /// Collects the permissions of a plugin.
    pub fn new(entry: &RegisteredPlugin, policy: &Policy) -> Self {
        let grant = entry.grant();
        let tools = ToolDecisions::new(entry, policy);
        let held = |capability: &Capability| grant.has_capability(*capability);
        let names = grant.secrets().iter().map(|secret| secret.name.to_string());
        Self {
            plugin: entry.name().clone(),
            works: PluginReadiness::new(entry, &tools, &grant),
            tools,
            net: grant.net().permission_lines().collect(),
            files: file_permissions(&grant),
            variables: grant.env().to_vec(),
            secrets: names.collect(),
            capabilities: Capability::ALL
                .into_iter()
                .filter(held)
                .map(Capability::as_str)
                .collect(),
            missing: missing_requests(entry),
        }
    }
}

impl PluginReadiness {
    fn new(entry: &RegisteredPlugin, tools: &ToolDecisions, grant: &Grant) -> Self {
        let because = |reason: String| Self::Unusable { reason };
        match entry.availability() {
            PluginAvailability::Compiling => because("compiling".to_owned()),
            PluginAvailability::Disabled { reason } => because(format!("disabled: {reason}")),
            PluginAvailability::Changed { differences } => {
                because(format!("changed: {}", differences.join("; ")))
            }
            PluginAvailability::Ready => match entry.unconditional_denial() {
                Some(denial) => because(denial.reason.to_string()),
                None if tools.are_all_denied() => because("all tools are denied".to_owned()),
                None if grant.lacks_needed_request() => Self::Limited,
                None => Self::Ready,
            },
        }
    }
}

impl ToolDecisions {
    fn new(entry: &RegisteredPlugin, policy: &Policy) -> Self {
        let mut decisions = Self::default();
        for tool in entry.tools() {
            let names = match likely_decision(entry, policy, &tool.id).0 {
                Decision::Allow => &mut decisions.allow,
                Decision::Ask => &mut decisions.ask,
                Decision::Deny => &mut decisions.deny,
            };
            names.push(tool.id.tool.to_string());
        }
        decisions
    }

    fn are_all_denied(&self) -> bool {
        !self.deny.is_empty() && self.allow.is_empty() && self.ask.is_empty()
    }
}

/// Returns the requests of a plugin that are not granted.
pub fn missing_requests(entry: &RegisteredPlugin) -> Vec<MissingRequest> {
    let found = entry.grant().ungranted_requests();
    let missing = |request: &UngrantedRequest| MissingRequest {
        request: request.to_string(),
        needed: request.is_needed(),
        denied_at: request.denied_at.as_ref().map(ToString::to_string),
        grant: request.grant_flags(),
    };
    found.iter().map(missing).collect()
}

fn file_permissions(grant: &Grant) -> Vec<FilePermission> {
    let mounts = grant.fs().iter();
    mounts
        .map(|mount| FilePermission {
            access: mount.access.as_str(),
            path: mount.host.clone(),
            seen_as: mount.guest.clone(),
        })
        .collect()
}
