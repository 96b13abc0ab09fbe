//! The permissions of plugins at a glance: what each may reach, which of its tools run without
//! asking, what it lacks, and whether it can work.
//!
//! `sallyport policy`, `plugin list` and the chat show the same data.

use std::path::PathBuf;

use sallyport_contract::{Decision, PluginName, ToolId};
use sallyport_policy::{Capability, Grant, PluginRole, Policy};
use sallyport_runtime::registry::{PluginAvailability, RegisteredPlugin, Registry};
use sallyport_terminal::listing::ListRow;
use serde::Serialize;

use super::call_display::{self, MissingRequest};

/// The names of the columns of [`PluginPermissions::table_row`].
pub(super) const COLUMNS: [&str; 7] =
    ["plugin", "works", "tools", "net", "files", "other", "missing"];

/// The names of the columns of [`PluginPermissions::short_table_row`].
pub(super) const SHORT_COLUMNS: [&str; 8] =
    ["plugin", "works", "tools", "may use", "missing", "version", "kind", "description"];

/// The permissions of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PluginPermissions {
    plugin: PluginName,
    works: Readiness,
    tools: ToolDecisions,
    /// The requests that it may send, one pattern each.
    net: Vec<String>,
    files: Vec<FilePermission>,
    variables: Vec<String>,
    secrets: Vec<String>,
    capabilities: Vec<&'static str>,
    /// What it requests and is not granted.
    missing: Vec<MissingRequest>,
}

/// Whether a plugin can work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
enum Readiness {
    /// It has all that it needs.
    Ready,
    /// It can be called, but calls that use what it lacks are refused.
    Limited,
    /// It cannot be called.
    Unusable { reason: String },
}

/// A folder or file that a plugin sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FilePermission {
    access: &'static str,
    path: PathBuf,
    seen_as: String,
}

/// The expected decision about each tool, before its arguments are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct ToolDecisions {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

/// Returns the permissions of every plugin of a registry, in its order.
pub(super) fn all_permissions(registry: &Registry) -> Vec<PluginPermissions> {
    let policy = registry.gate().policy_store.current().policy;
    registry.entries().map(|entry| PluginPermissions::new(entry, &policy)).collect()
}

/// Returns the likely decision about calls of a tool, before their arguments are known, with the
/// reason.
pub(super) fn likely_decision(
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
    pub(super) fn new(entry: &RegisteredPlugin, policy: &Policy) -> Self {
        let grant = entry.grant();
        let tools = ToolDecisions::new(entry, policy);
        let held = |capability: &Capability| grant.has_capability(*capability);
        let names = grant.secrets().iter().map(|secret| secret.name.to_string());
        Self {
            plugin: entry.name().clone(),
            works: Readiness::new(entry, &tools, &grant),
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
            missing: call_display::missing_requests(entry),
        }
    }

    /// The row of a table whose columns are [`COLUMNS`].
    pub(super) fn table_row(&self) -> ListRow {
        let missing = self.missing.iter().map(|missing| missing.request.as_str());
        ListRow::new([
            self.plugin.to_string(),
            self.works_text(),
            self.tools.counts_text(),
            self.net.join(", "),
            self.files_text(),
            self.other_text(),
            missing.collect::<Vec<_>>().join(", "),
        ])
    }

    /// The row of a table whose columns are [`SHORT_COLUMNS`].
    pub(super) fn short_table_row(&self, entry: &RegisteredPlugin) -> ListRow {
        let manifest = entry.manifest();
        let missing = match self.missing.len() {
            0 => String::new(),
            1 => "1 request".to_owned(),
            count => format!("{count} requests"),
        };
        ListRow::new([
            self.plugin.to_string(),
            self.works_text(),
            self.tools.counts_text(),
            self.reach_text(),
            missing,
            manifest.version.clone(),
            kind_text(entry),
            manifest.description.clone(),
        ])
    }

    /// Whether it works, such as `no, disabled: the setting zone is missing`.
    fn works_text(&self) -> String {
        match &self.works {
            Readiness::Ready => "yes".to_owned(),
            Readiness::Limited => "partly".to_owned(),
            Readiness::Unusable { reason } => format!("no, {reason}"),
        }
    }

    /// The kinds of things that it may use, such as `net, files, state`.
    fn reach_text(&self) -> String {
        let kinds = [(!self.net.is_empty(), "net"), (!self.files.is_empty(), "files")];
        let kinds = kinds.into_iter().filter(|(held, _)| *held).map(|(_, kind)| kind.to_owned());
        let others = Some(self.other_text()).filter(|other| !other.is_empty());
        kinds.chain(others).collect::<Vec<_>>().join(", ")
    }

    fn files_text(&self) -> String {
        let file = |file: &FilePermission| {
            let seen = match file.path.to_str() == Some(&file.seen_as) {
                true => String::new(),
                false => format!(" as {}", file.seen_as),
            };
            format!("{} {}{seen}", file.access, file.path.display())
        };
        self.files.iter().map(file).collect::<Vec<_>>().join(", ")
    }

    fn other_text(&self) -> String {
        let variables = self.variables.iter().map(|name| format!("variable {name}"));
        let secrets = self.secrets.iter().map(|name| format!("secret {name}"));
        let capabilities = self.capabilities.iter().map(|name| (*name).to_owned());
        variables.chain(secrets).chain(capabilities).collect::<Vec<_>>().join(", ")
    }
}

impl Readiness {
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

    fn counts_text(&self) -> String {
        let lists = [
            (&self.allow, Decision::Allow),
            (&self.ask, Decision::Ask),
            (&self.deny, Decision::Deny),
        ];
        let counts = lists.iter().filter(|(names, _)| !names.is_empty());
        let counts =
            counts.map(|(names, decision)| format!("{} {}", names.len(), decision.as_str()));
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// The kind of a plugin, and its roles besides tools: `component, guide`.
pub(super) fn kind_text(entry: &RegisteredPlugin) -> String {
    let roles = entry.manifest().roles.iter().filter(|role| **role != PluginRole::Tools);
    let words = std::iter::once(entry.kind().as_str()).chain(roles.map(|role| role.as_str()));
    words.collect::<Vec<_>>().join(", ")
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
