//! The effective grant of one plugin: what its manifest requests *and* the policy grants.
//!
//! It is computed when a plugin is loaded, and after every change of the policy. A refusal carries
//! the change to the policy that would lift it, if there is one.

mod capabilities;
mod net_grant;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sallyport_contract::{PluginName, text::escape_line};
use serde_json::{Map, Value};

use crate::{
    capability::{Capability, CapabilityContext, EffectiveCapabilities},
    environment::EnvEntry,
    folder::{FsAccess, FsEntry, FsMount, are_nested},
    glob::GlobSet,
    grant_note::GrantNote,
    limits::PluginLimits,
    manifest::{Manifest, PluginRole},
    net::{NetPattern, entry::NetAllowEntry},
    policy_context::PolicyContext,
    request::{FsRequest, PluginRequests},
    secret::{SecretGrant, SecretUse},
    source::SourceLocation,
    table::{PluginTable, TieredPluginTables},
    unit::ByteSize,
};

pub use self::net_grant::{NetGrant, NetPermit, ReachableAddresses};

/// All powers of one plugin. Everything else is denied:
///
/// * network: no requests, except those that [`net`](Self::net) permits;
/// * files: no folders, except the [`fs`](Self::fs) mounts;
/// * environment: empty, except for the variables in [`env`](Self::env);
/// * secrets: none, except those in [`secrets`](Self::secrets);
/// * capabilities of the host: none, except [`state`](Self::state) and the accessors after it;
/// * time, memory and similar resources: up to the [`limits`](Self::limits).
#[derive(Debug, Clone)]
pub struct Grant {
    policy_context: Arc<PolicyContext>,
    limits: PluginLimits,
    net: NetGrant,
    /// The author's reasons for the network requests, in the order of these.
    net_reasons: Vec<String>,
    fs: Vec<FsMount>,
    request: PluginRequests,
    env: Vec<String>,
    secrets: Vec<SecretGrant>,
    capabilities: EffectiveCapabilities,
    notes: Vec<GrantNote>,
}

impl Grant {
    /// Returns the grant of a plugin without any power: it can only compute.
    pub fn empty(plugin: PluginName) -> Self {
        let tables = TieredPluginTables::empty(plugin.clone());
        let (secrets, scratch_quotas) = (BTreeSet::new(), BTreeMap::new());
        let policy_context =
            PolicyContext { tables, has_covering_rule: false, secrets, scratch_quotas };
        Self::new(policy_context, &Manifest::for_bare_component(plugin), &Map::new())
    }

    pub(crate) fn new(
        policy_context: PolicyContext,
        manifest: &Manifest,
        settings: &Map<String, Value>,
    ) -> Self {
        let policy_context = Arc::new(policy_context);
        let (table, request) = (policy_context.effective_table(), &manifest.request);
        let mut notes = Vec::new();
        let (requests, net_reasons) = fill_net_requests(manifest, settings, &mut notes);
        let net = NetGrant::new(Arc::clone(&policy_context), requests, request.secrets.clone());
        let unrequested = |(pattern, place): (&NetPattern, &SourceLocation)| {
            GrantNote::for_unrequested_entry(place, format!("grants {pattern}"))
        };
        notes.extend(net.unrequested_entries().map(unrequested));
        notes.extend(idle_roles(manifest).map(GrantNote::from));
        let limits = PluginLimits::from_stated(&table.limits);
        let fs = effective_mounts(&table.fs, &request.fs, &mut notes);
        let env = effective_env(table, request, &mut notes);
        let secrets = effective_secrets(table, request, &mut notes);
        let requested: Vec<_> = request.capabilities.iter().map(|one| &one.requested).collect();
        let capabilities = EffectiveCapabilities::new(
            &capability_context(&policy_context),
            &requested,
            &mut notes,
        );
        let request = request.clone();
        Self {
            limits,
            net,
            net_reasons,
            fs,
            request,
            env,
            secrets,
            capabilities,
            notes,
            policy_context,
        }
    }

    /// Returns the same plugin's grant without any power; only its limits remain.
    pub fn without_permissions(&self) -> Self {
        Self {
            policy_context: Arc::clone(&self.policy_context),
            limits: self.limits.clone(),
            net: NetGrant::new(Arc::clone(&self.policy_context), Vec::new(), Vec::new()),
            net_reasons: Vec::new(),
            fs: Vec::new(),
            request: PluginRequests::empty(),
            env: Vec::new(),
            secrets: Vec::new(),
            capabilities: EffectiveCapabilities::new(
                &capability_context(&self.policy_context),
                &[],
                &mut Vec::new(),
            ),
            notes: Vec::new(),
        }
    }

    /// The plugin that holds the grant.
    pub fn plugin(&self) -> &PluginName {
        &self.policy_context.effective_table().plugin
    }

    /// The policy's table for the plugin, whether or not its manifest requests the entries.
    pub(crate) fn table(&self) -> &PluginTable {
        self.policy_context.effective_table()
    }

    /// The requests that the plugin may send.
    pub fn net(&self) -> &NetGrant {
        &self.net
    }

    /// The author's reasons for the network requests, in the order of these.
    pub(crate) fn net_reasons(&self) -> &[String] {
        &self.net_reasons
    }

    /// The folders and files that the guest sees. Overlapping ones have the same access.
    pub fn fs(&self) -> &[FsMount] {
        &self.fs
    }

    /// The names of the environment variables that the guest sees.
    pub fn env(&self) -> &[String] {
        &self.env
    }

    /// The secrets that the plugin uses, and how.
    pub fn secrets(&self) -> &[SecretGrant] {
        &self.secrets
    }

    /// Whether the plugin holds a capability, or any part of it.
    pub fn has_capability(&self, capability: Capability) -> bool {
        self.capabilities.find_held(capability).is_some()
    }

    /// The grant of a capability, if it has this type.
    fn held_capability<T: 'static>(&self, capability: Capability) -> Option<&T> {
        self.capabilities.value(capability)
    }

    pub(crate) fn policy_context(&self) -> &PolicyContext {
        &self.policy_context
    }

    pub(crate) fn effective_capabilities(&self) -> &EffectiveCapabilities {
        &self.capabilities
    }

    /// The limits of a call.
    pub fn limits(&self) -> &PluginLimits {
        &self.limits
    }

    /// Notes for the operator, one sentence each: requests that have no effect, and policy entries
    /// that nothing requests.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(ToString::to_string).collect()
    }

    /// The policy entries that the manifest does not request, each as a short description of its
    /// effect.
    pub(crate) fn unrequested_entries(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().filter_map(|note| match note {
            GrantNote::Unrequested { effect, .. } => Some(effect.as_str()),
            GrantNote::Other(_) => None,
        })
    }

    /// The manifest's requests, as the manifest states them. [`net`](Self::net) has the network
    /// requests with the settings filled in.
    pub(crate) fn manifest_requests(&self) -> &PluginRequests {
        &self.request
    }

    /// The plugin's powers, one line each, for the user who decides. The lines contain host paths.
    pub fn permission_lines(&self) -> Vec<String> {
        let mounts = self.fs.iter().map(mount_permission_line);
        let env = self.env.iter().map(|name| format!("see the environment variable {name}"));
        let secrets = self.secrets.iter().map(|grant| grant.usage.permission_line(&grant.name));
        let others = self.capabilities.permission_lines().cloned();
        self.net.permission_lines().chain(mounts).chain(env).chain(secrets).chain(others).collect()
    }

    /// Whether the plugin can change anything or leak anything. Reading files is neither. Reading a
    /// secret is a leak: a tool's result can carry the secret away.
    pub fn can_change_or_leak(&self) -> bool {
        !self.danger_phrases().is_empty()
    }

    /// Whether a call could change or leak anything, including the plugin's own state, timers and
    /// scratches. Such a call has to be on record before it starts. Reading files and showing
    /// progress do not count.
    pub fn can_act(&self) -> bool {
        let acts = |of: &Capability| *of != Capability::Progress && self.has_capability(*of);
        self.can_change_or_leak() || Capability::ALL.iter().any(acts)
    }

    fn can_write(&self) -> bool {
        self.fs.iter().any(|mount| mount.access == FsAccess::ReadWrite)
    }

    /// The plugin's dangerous powers as verb phrases, such as `reach the network`.
    pub(crate) fn danger_phrases(&self) -> Vec<&'static str> {
        let dangers = [
            (!self.net.is_empty(), "reach the network"),
            (self.can_write(), "change files"),
            (!self.secrets.is_empty(), "use secrets"),
        ];
        let dangers = dangers.into_iter().filter_map(|(is_real, words)| is_real.then_some(words));
        dangers.chain(self.capabilities.danger_phrases().map(|(_, words)| words)).collect()
    }

    /// The dangerous powers that only a project's policy takes away, as verb phrases.
    pub(crate) fn withheld_danger_phrases(&self) -> Vec<&'static str> {
        self.capabilities.denied_by_project.iter().filter_map(|(_, danger)| *danger).collect()
    }

    /// Whether the plugin holds a capability, or would if a project's policy did not take it away.
    /// Conditions see no difference, because an untrusted file must not disable a rule by taking
    /// something away.
    pub(crate) fn has_capability_by_operator(&self, capability: Capability) -> bool {
        let is_denied_by_project =
            || self.capabilities.denied_by_project.iter().any(|(of, _)| *of == capability);
        self.has_capability(capability) || is_denied_by_project()
    }
}

/// The policy for the plugin, as its capabilities see it.
fn capability_context(policy_context: &Arc<PolicyContext>) -> Arc<dyn CapabilityContext> {
    Arc::<PolicyContext>::clone(policy_context)
}

/// The roles without effect: the manifest does not request the capability that they need.
fn idle_roles(manifest: &Manifest) -> impl Iterator<Item = String> {
    let lacks = |role: &PluginRole| {
        let needed = match role {
            PluginRole::Tools
            | PluginRole::Provider
            | PluginRole::Guide
            | PluginRole::Resources
            | PluginRole::Prompts => return None,
            PluginRole::Listener => Capability::Listen,
            PluginRole::Ui => Capability::Ui,
        };
        let role = role.as_str();
        (!manifest.request.requests_capability(needed)).then(|| {
            format!("the role \"{role}\" has no effect: plugin.toml does not request {needed}")
        })
    };
    manifest.roles.iter().filter_map(lacks)
}

fn fill_net_requests(
    manifest: &Manifest,
    settings: &Map<String, Value>,
    notes: &mut Vec<GrantNote>,
) -> (Vec<NetPattern>, Vec<String>) {
    let settings = manifest.settings.with_defaults(settings);
    let (mut requests, mut reasons) = (Vec::new(), Vec::new());
    for request in &manifest.request.net {
        match request.allow.fill_settings(&settings) {
            Ok(pattern) => {
                requests.push(pattern);
                reasons.push(request.why.clone());
            }
            Err(error) => {
                let allow = escape_line(&request.allow.to_string());
                notes.push(format!("the request for {allow} has no effect: {error}").into());
            }
        }
    }
    (requests, reasons)
}

fn effective_mounts(
    entries: &[FsEntry],
    requests: &[FsRequest],
    notes: &mut Vec<GrantNote>,
) -> Vec<FsMount> {
    let mut mounts = Vec::new();
    for entry in entries {
        let covering = requests.iter().filter(|request| request.covers_entry(entry));
        match covering.map(|request| request.access).max() {
            Some(requested) => {
                let access = entry.mount.access.min(requested);
                mounts.push(FsMount {
                    access,
                    deny: combined_denied_globs(entry, entries),
                    ..entry.mount.clone()
                });
            }
            None => {
                let effect = format!("grants {}", escape_line(&entry.path_text));
                notes.push(GrantNote::for_unrequested_entry(&entry.place, effect));
            }
        }
    }
    narrow_overlaps(&mut mounts, notes);
    mounts
}

/// The globs that deny files in an entry's folder: its own, those of the entries above and below
/// it, and those of every folder.
fn combined_denied_globs(entry: &FsEntry, entries: &[FsEntry]) -> GlobSet {
    let mut denied = entry.mount.deny.clone();
    for other in entries.iter().filter(|other| *other != entry) {
        denied.inherit_from(&entry.mount.host, &other.mount.deny, &other.mount.host);
    }
    denied.deny_project_files();
    denied
}

/// Makes overlapping mounts read-only if one of them is, because a link or a rename could otherwise
/// carry files across. A policy alone cannot cause this, but a manifest's requests can: they may
/// lower the access of one of two entries.
fn narrow_overlaps(mounts: &mut [FsMount], notes: &mut Vec<GrantNote>) {
    let wider = |mounts: &[FsMount]| {
        mounts.iter().position(|mount| {
            let overlaps = |other: &FsMount| are_nested(&mount.host, &other.host);
            mount.access == FsAccess::ReadWrite
                && mounts.iter().any(|other| other.access == FsAccess::Read && overlaps(other))
        })
    };
    while let Some(index) = wider(mounts) {
        mounts[index].access = FsAccess::Read;
        let guest = escape_line(&mounts[index].guest);
        let note = format!("{guest} is for reading only, as it overlaps a folder that is");
        notes.push(note.into());
    }
}

fn effective_env(
    table: &PluginTable,
    request: &PluginRequests,
    notes: &mut Vec<GrantNote>,
) -> Vec<String> {
    // A native program does not name its variables, so the operator alone chooses them.
    let is_any = request.requests_capability(Capability::Process);
    let is_requested =
        |entry: &&EnvEntry| is_any || request.env.iter().any(|r| r.name == entry.name);
    let (both, unused): (Vec<_>, Vec<_>) = table.env.iter().partition(is_requested);
    notes.extend(unused.into_iter().map(|EnvEntry { name, place }| {
        GrantNote::for_unrequested_entry(place, format!("grants the variable {name}"))
    }));
    let mut names: Vec<String> = both.into_iter().map(|entry| entry.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn effective_secrets(
    table: &PluginTable,
    request: &PluginRequests,
    notes: &mut Vec<GrantNote>,
) -> Vec<SecretGrant> {
    let mut both: Vec<SecretGrant> = Vec::new();
    for entry in &table.secrets {
        let SecretGrant { name, usage, place } = entry;
        let line = usage.permission_line(name);
        if !request.secrets.iter().any(|request| request.covers_grant(entry)) {
            notes.push(GrantNote::for_unrequested_entry(place, format!("lets it {line}")));
        } else if !both.iter().any(|other| (&other.name, &other.usage) == (name, usage)) {
            both.push(entry.clone());
            notes.extend(useless_secret_note(entry, table).map(GrantNote::from));
        }
    }
    both
}

/// The note about a secret for an origin that no request can reach.
fn useless_secret_note(entry: &SecretGrant, table: &PluginTable) -> Option<String> {
    let SecretUse::Inject(injection) = &entry.usage else { return None };
    let origin = injection.origin();
    let reaches = |allow: &NetAllowEntry| allow.pattern.can_reach_origin(origin);
    (!table.net.allows.iter().any(reaches)).then(|| {
        format!("{} sends a secret to {origin}, which no entry of \"net\" allows", entry.place)
    })
}

/// The power that a mount gives a plugin, for the user who decides.
fn mount_permission_line(mount: &FsMount) -> String {
    let host = escape_line(&mount.host.to_string_lossy());
    let mut text =
        format!("{} {host}, seen as {}", mount.access.as_str(), escape_line(&mount.guest));
    if !mount.deny.is_empty() {
        text += &format!(", without {}", mount.deny);
    }
    if let Some(bytes) = mount.quota_bytes {
        text += &format!(", up to {}", ByteSize(bytes));
    }
    text
}
