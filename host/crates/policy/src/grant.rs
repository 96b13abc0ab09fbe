//! The effective grant of one plugin: what its manifest requests *and* the policy grants.
//!
//! It is computed when a plugin is loaded, and again whenever the policy has changed. Every question
//! about the plugin's powers is answered from here. A refusal carries the policy text that would lift
//! it, where a policy can.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use sallyport_contract::{Denial, PluginName, text::one_line};
use serde_json::{Map, Value};
use url::Url;

use crate::{
    capability::{
        self, Capability, Held, ListenGrant, NotifyGrant, OpenUrlEntry, OpenUrlGrant,
        PackagesGrant, ProcessGrant, ScheduleGrant, ScratchEntry, ScratchGrant, StateGrant,
        UiGrant,
    },
    environment::EnvEntry,
    fix::Ground,
    folder::{Access, FsEntry, FsMount, are_nested},
    glob::Globs,
    grant_note::GrantNote,
    limits::Limits,
    manifest::{Manifest, Role},
    net::{
        NetGrant, NetPattern, NetPermit, address::own_addresses, entry::Allow, grant::request_line,
    },
    refusal,
    request::{FsRequest, Request},
    secret::{self, SecretGrant, SecretWay},
    source::Place,
    table::{PluginTable, Tables},
    unit::ByteSize,
    verdict::page_line,
};

/// All that one plugin may do. What is not in it is denied:
///
/// * network: no request leaves, except as [`net`](Self::net) lets it;
/// * files: no folder exists, except the [`fs`](Self::fs) mounts;
/// * environment: empty, except for the variables of [`env`](Self::env);
/// * secrets: none, except as [`secrets`](Self::secrets) says;
/// * capabilities of the host: none, except as [`state`](Self::state) and its neighbours say;
/// * time, memory and the like: what [`limits`](Self::limits) says.
#[derive(Debug, Clone)]
pub struct Grant {
    ground: Arc<Ground>,
    limits: Limits,
    net: NetGrant,
    fs: Vec<FsMount>,
    request: Request,
    env: Vec<String>,
    secrets: Vec<SecretGrant>,
    held: Held,
    notes: Vec<GrantNote>,
}

impl Grant {
    /// Returns the grant of a plugin that may do nothing but compute.
    pub fn none(plugin: PluginName) -> Self {
        let tables = Tables::empty(plugin.clone());
        let (secrets, scratch_quotas) = (BTreeSet::new(), BTreeMap::new());
        let ground = Ground { tables, is_ruled: false, secrets, scratch_quotas };
        Self::new(ground, &Manifest::bare(plugin), &Map::new())
    }

    pub(crate) fn new(ground: Ground, manifest: &Manifest, settings: &Map<String, Value>) -> Self {
        let ground = Arc::new(ground);
        let (table, request) = (ground.table(), &manifest.request);
        let mut notes = Vec::new();
        let requests = filled_requests(manifest, settings, &mut notes);
        let net = NetGrant::new(Arc::clone(&ground), requests, request.secrets.clone());
        let unrequested = |(pattern, place): (&NetPattern, &Place)| {
            GrantNote::unrequested(place, format!("grants {pattern}"))
        };
        notes.extend(net.unrequested().map(unrequested));
        notes.extend(idle_roles(manifest).map(GrantNote::from));
        let limits = Limits::of(&table.limits);
        let fs = effective_mounts(&table.fs, &request.fs, &mut notes);
        let env = effective_env(table, request, &mut notes);
        let secrets = effective_secrets(table, request, &mut notes);
        let held = Held::new(&ground, &request.capabilities, &mut notes);
        let request = request.clone();
        Self { limits, net, fs, request, env, secrets, held, notes, ground }
    }

    /// Returns the same plugin's grant without any power: what is left are its limits.
    pub fn powerless(&self) -> Self {
        Self {
            ground: Arc::clone(&self.ground),
            limits: self.limits.clone(),
            net: NetGrant::new(Arc::clone(&self.ground), Vec::new(), Vec::new()),
            fs: Vec::new(),
            request: Request::none(),
            env: Vec::new(),
            secrets: Vec::new(),
            held: Held::none(&self.ground),
            notes: Vec::new(),
        }
    }

    /// The plugin that holds the grant.
    pub fn plugin(&self) -> &PluginName {
        &self.ground.table().plugin
    }

    /// What the policy says about the plugin, whether or not its manifest requests it.
    pub(crate) fn table(&self) -> &PluginTable {
        self.ground.table()
    }

    /// The network.
    pub fn net(&self) -> &NetGrant {
        &self.net
    }

    /// The folders and files that the guest sees. No two that overlap differ in their access.
    pub fn fs(&self) -> &[FsMount] {
        &self.fs
    }

    /// Names of the environment variables that the guest sees.
    pub fn env(&self) -> &[String] {
        &self.env
    }

    /// The secrets that the plugin makes use of, and how.
    pub fn secrets(&self) -> &[SecretGrant] {
        &self.secrets
    }

    /// How much it may keep.
    pub fn state(&self) -> Option<&StateGrant> {
        self.held.state.as_ref()
    }

    /// Which timers it may set.
    pub fn schedule(&self) -> Option<&ScheduleGrant> {
        self.held.schedule.as_ref()
    }

    /// How often it may speak to the person.
    pub fn notify(&self) -> Option<&NotifyGrant> {
        self.held.notify.as_ref()
    }

    /// Whether it may show how far a call has come.
    pub fn progress(&self) -> bool {
        self.held.progress
    }

    /// Which pages it may open in the user's browser.
    pub fn open_url(&self) -> Option<&OpenUrlGrant> {
        self.held.open_url.as_ref()
    }

    /// Which packages it may have fetched.
    pub fn packages(&self) -> &PackagesGrant {
        &self.held.packages
    }

    /// The scratches that the guest sees. None lies in or around another one, or a folder.
    pub fn scratch(&self) -> &[ScratchGrant] {
        &self.held.scratch
    }

    /// What it may listen to.
    pub fn listen(&self) -> &[ListenGrant] {
        &self.held.listen
    }

    /// What it may do as the user's side of a session.
    pub fn ui(&self) -> Option<UiGrant> {
        self.held.ui
    }

    /// How it may run as a program of this machine.
    pub fn process(&self) -> Option<&ProcessGrant> {
        self.held.process.as_ref()
    }

    /// Whether it holds a capability, or any part of it.
    pub fn holds(&self, capability: Capability) -> bool {
        self.held.holds(capability)
    }

    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// What a call may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What is odd about the grant, a sentence each, for the operator: requests that are void,
    /// entries of the policy that nothing requests.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(ToString::to_string).collect()
    }

    /// The entries of the policy that the manifest does not request: what they do, a few words each.
    pub(crate) fn unrequested(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().filter_map(|note| match note {
            GrantNote::Unrequested { act, .. } => Some(act.as_str()),
            GrantNote::Other(_) => None,
        })
    }

    /// What the manifest requests, with the settings filled in.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// What the plugin can do, a line each, for the person who decides. Names paths of the host.
    pub fn powers(&self) -> Vec<String> {
        let mounts = self.fs.iter().map(describe);
        let env = self.env.iter().map(|name| format!("see the environment variable {name}"));
        let secrets = self.secrets.iter().map(|grant| grant.way.power(&grant.name));
        let others = self.held.powers();
        self.net.powers().chain(mounts).chain(env).chain(secrets).chain(others).collect()
    }

    /// Whether the plugin can change anything, or carry anything away. Reading alone is neither, but
    /// for secrets: a tool's answer carries them away.
    pub fn can_change_or_leak(&self) -> bool {
        !self.dangers().is_empty()
    }

    /// Whether a call could change or leak anything, its own state, timers and scratches included: what
    /// a record has to be on the disk before. Reading files alone, and showing progress, are neither.
    pub fn may_act(&self) -> bool {
        let acts = |of: &Capability| *of != Capability::Progress && self.holds(*of);
        self.can_change_or_leak() || Capability::ALL.iter().any(acts)
    }

    fn can_write(&self) -> bool {
        self.fs.iter().any(|mount| mount.access == Access::ReadWrite)
    }

    /// What it can change or carry away, in words: `reach the network`.
    pub(crate) fn dangers(&self) -> Vec<&'static str> {
        let dangers = [
            (!self.net.is_empty(), "reach the network"),
            (self.can_write(), "change files"),
            (!self.secrets.is_empty(), "use secrets"),
        ];
        let dangers = dangers.into_iter().filter_map(|(is_real, words)| is_real.then_some(words));
        dangers.chain(self.held.dangers().map(|(_, words)| words)).collect()
    }

    /// What it could change or carry away if a project's policy did not take that away, in words.
    pub(crate) fn withheld_dangers(&self) -> Vec<&'static str> {
        self.held.withheld.iter().filter_map(|(_, danger)| *danger).collect()
    }

    /// Whether it holds a capability, or would if a project's policy did not take it away. Conditions
    /// see no difference: what a stranger takes away must not lift a rule.
    pub(crate) fn holds_by_its_operator(&self, capability: Capability) -> bool {
        let withheld = || self.held.withheld.iter().any(|(of, _)| *of == capability);
        self.holds(capability) || withheld()
    }

    /// The scratches and addresses that would be granted next to what is requested.
    pub(crate) fn lacking(&self) -> (Vec<ScratchEntry>, Vec<ListenGrant>) {
        let wishes = || self.request.capabilities.iter().map(|request| &request.wish);
        let scratches = capability::new_scratches(&self.ground, wishes());
        (scratches, capability::new_listens(&self.held, wishes()))
    }

    /// The entry that lets a page be opened.
    pub(crate) fn page(&self, url: &Url) -> Result<&OpenUrlEntry, Denial> {
        match self.open_url() {
            Some(pages) => pages.permit(url),
            None => Err(self.deny(Capability::OpenUrl, &page_line(url))),
        }
    }

    /// Returns the refusal of a request that would have gone to an address which
    /// [`allows_address`](crate::NetPermit::allows_address) does not allow.
    ///
    /// `what` is the request as records name it, method and URL without its query.
    pub fn deny_address(&self, what: &str, addr: IpAddr) -> Denial {
        refusal::of_address(&self.ground, what, addr)
    }

    /// Checks a request before anything is resolved or dialled: method, scheme, host, port, path,
    /// and the address where the host can only mean one, as a literal or `localhost` does.
    ///
    /// # Errors
    ///
    /// The request may not be sent; the refusal says why and how to lift it.
    pub fn check_request(&self, method: &str, url: &Url) -> Result<NetPermit<'_>, Denial> {
        let permit = self.net().check(method, url)?;
        let own = own_addresses(url);
        match own.first() {
            Some(addr) if !own.iter().any(|addr| permit.allows_address(*addr)) => {
                Err(self.deny_address(&request_line(method, url), *addr))
            }
            Some(_) | None => Ok(permit),
        }
    }

    /// Returns the refusal of an access to a file by its path in the guest.
    pub fn deny_path(&self, guest_path: &str, wanted: Access) -> Denial {
        refusal::of_path(&self.ground, self, &self.request.fs, guest_path, wanted)
    }

    /// Returns the policy text that would let the plugin see the files it requests, for a refusal
    /// that only the plugin saw. `guest_path` is where it probably looked, `wanted` what for.
    ///
    /// `None` when it has all that it requests, or requests no files.
    pub fn missing_files(&self, guest_path: Option<&str>, wanted: Access) -> Option<String> {
        refusal::files_text(&self.ground, self, &self.request.fs, guest_path, wanted)
    }

    /// Returns the refusal of something that only a capability lets a plugin do; of a UI that is
    /// granted, to answer a question. `what` is what it tried, such as `set a timer`.
    pub fn deny(&self, capability: Capability, what: &str) -> Denial {
        let requests = &self.request.capabilities;
        capability::denial(&self.ground, self, requests, capability, what)
    }

    /// Returns the refusal of a program of this machine that the kernel cannot wall in. `what` is
    /// what it tried, such as `run`.
    pub fn deny_unwalled(&self, what: &str) -> Denial {
        capability::of_unwalled(&self.ground, &self.held, what)
    }

    /// Returns the refusal of a secret that the plugin tried to read.
    pub fn deny_secret(&self, name: &str) -> Denial {
        secret::refusal(&self.ground, &self.request.secrets, name)
    }
}

/// Roles that a plugin cannot play with what it requests.
fn idle_roles(manifest: &Manifest) -> impl Iterator<Item = String> {
    let lacks = |role: &Role| {
        let needed = match role {
            Role::Tools | Role::Provider | Role::Guide => return None,
            Role::Listener => Capability::Listen,
            Role::Ui => Capability::Ui,
        };
        let role = role.word();
        (!manifest.request.asks_for(needed)).then(|| {
            format!("the role \"{role}\" has no effect: plugin.toml does not request {needed}")
        })
    };
    manifest.roles.iter().filter_map(lacks)
}

fn filled_requests(
    manifest: &Manifest,
    settings: &Map<String, Value>,
    notes: &mut Vec<GrantNote>,
) -> Vec<NetPattern> {
    let settings = manifest.settings.with_defaults(settings);
    let mut requests = Vec::new();
    for request in &manifest.request.net {
        match request.allow.fill(&settings) {
            Ok(pattern) => requests.push(pattern),
            Err(error) => {
                let allow = one_line(&request.allow.to_string());
                notes.push(format!("the request for {allow} has no effect: {error}").into());
            }
        }
    }
    requests
}

fn effective_mounts(
    entries: &[FsEntry],
    requests: &[FsRequest],
    notes: &mut Vec<GrantNote>,
) -> Vec<FsMount> {
    let mut mounts = Vec::new();
    for entry in entries {
        let covering = requests.iter().filter(|request| request.covers(entry));
        match covering.map(|request| request.access).max() {
            Some(requested) => {
                let access = entry.mount.access.min(requested);
                mounts.push(FsMount {
                    access,
                    deny: all_denied(entry, entries),
                    ..entry.mount.clone()
                });
            }
            None => {
                let act = format!("grants {}", one_line(&entry.written));
                notes.push(GrantNote::unrequested(&entry.place, act));
            }
        }
    }
    narrow_overlaps(&mut mounts, notes);
    mounts
}

/// What is denied in the folder of an entry, by itself and by the entries around it and below it.
fn all_denied(entry: &FsEntry, entries: &[FsEntry]) -> Globs {
    let mut denied = entry.mount.deny.clone();
    for other in entries.iter().filter(|other| *other != entry) {
        denied.inherit(&entry.mount.host, &other.mount.deny, &other.mount.host);
    }
    denied
}

/// Makes mounts that overlap on the host readable only, where one of them is: a link or a renaming
/// would carry files across otherwise. Policies cannot say such a thing, but requests can make it
/// out of what they say.
fn narrow_overlaps(mounts: &mut [FsMount], notes: &mut Vec<GrantNote>) {
    let wider = |mounts: &[FsMount]| {
        mounts.iter().position(|mount| {
            let overlaps = |other: &FsMount| are_nested(&mount.host, &other.host);
            mount.access == Access::ReadWrite
                && mounts.iter().any(|other| other.access == Access::Read && overlaps(other))
        })
    };
    while let Some(index) = wider(mounts) {
        mounts[index].access = Access::Read;
        let guest = one_line(&mounts[index].guest);
        let note = format!("{guest} is for reading only, as it overlaps a folder that is");
        notes.push(note.into());
    }
}

fn effective_env(
    table: &PluginTable,
    request: &Request,
    notes: &mut Vec<GrantNote>,
) -> Vec<String> {
    // A program of this machine has no way to name its variables, so the operator does.
    let is_any = request.asks_for(Capability::Process);
    let is_requested =
        |entry: &&EnvEntry| is_any || request.env.iter().any(|r| r.name == entry.name);
    let (both, unused): (Vec<_>, Vec<_>) = table.env.iter().partition(is_requested);
    notes.extend(unused.into_iter().map(|EnvEntry { name, place }| {
        GrantNote::unrequested(place, format!("grants the variable {name}"))
    }));
    let mut names: Vec<String> = both.into_iter().map(|entry| entry.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn effective_secrets(
    table: &PluginTable,
    request: &Request,
    notes: &mut Vec<GrantNote>,
) -> Vec<SecretGrant> {
    let mut both: Vec<SecretGrant> = Vec::new();
    for entry in &table.secrets {
        let SecretGrant { name, way, place } = entry;
        let power = way.power(name);
        if !request.secrets.iter().any(|request| request.covers(entry)) {
            notes.push(GrantNote::unrequested(place, format!("lets it {power}")));
        } else if !both.iter().any(|other| (&other.name, &other.way) == (name, way)) {
            both.push(entry.clone());
            notes.extend(useless(entry, table).map(GrantNote::from));
        }
    }
    both
}

/// What is odd about a secret that is sent where no request can go.
fn useless(entry: &SecretGrant, table: &PluginTable) -> Option<String> {
    let SecretWay::Inject(injection) = &entry.way else { return None };
    let origin = injection.origin();
    let reaches = |allow: &Allow| allow.pattern.reaches(origin);
    (!table.net.allows.iter().any(reaches)).then(|| {
        format!("{} sends a secret to {origin}, which no entry of \"net\" allows", entry.place)
    })
}

/// What a mount lets a plugin do, for the person who decides.
fn describe(mount: &FsMount) -> String {
    let host = one_line(&mount.host.to_string_lossy());
    let mut text = format!("{} {host}, seen as {}", mount.access.word(), one_line(&mount.guest));
    if !mount.deny.is_empty() {
        text += &format!(", without {}", mount.deny);
    }
    if let Some(bytes) = mount.quota_bytes {
        text += &format!(", up to {}", ByteSize(bytes));
    }
    text
}
