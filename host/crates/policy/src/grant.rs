//! The effective grant of one plugin: what its manifest requests *and* the policy grants.
//!
//! It is computed once, when a plugin is loaded. From then on every question about the plugin's
//! powers is answered from here, and every refusal carries the policy text that would lift it.

use std::{net::IpAddr, sync::Arc};

use sallyport_contract::{Denial, PluginName, text::one_line};
use serde_json::{Map, Value};

use crate::{
    fix::Ground,
    folder::{Access, FsEntry, FsMount, are_nested},
    limits::Limits,
    manifest::Manifest,
    net::{NetGrant, NetPattern},
    refusal,
    request::FsRequest,
    table::PluginTable,
};

/// All that one plugin may do. What is not in it is denied:
///
/// * network: no request leaves, except as [`net`](Self::net) lets it;
/// * files: no folder exists, except the [`fs`](Self::fs) mounts;
/// * environment: empty, except for the variables of [`env`](Self::env);
/// * time, memory and the like: what [`limits`](Self::limits) says.
#[derive(Debug, Clone)]
pub struct Grant {
    ground: Arc<Ground>,
    net: NetGrant,
    fs: Vec<FsMount>,
    fs_requests: Vec<FsRequest>,
    env: Vec<String>,
    notes: Vec<String>,
}

impl Grant {
    /// Returns the grant of a plugin that may do nothing but compute.
    pub fn none(plugin: PluginName) -> Self {
        let ground = Ground { table: PluginTable::empty(plugin.clone()), is_ruled: false };
        Self::new(ground, &Manifest::bare(plugin), &Map::new())
    }

    pub(crate) fn new(ground: Ground, manifest: &Manifest, settings: &Map<String, Value>) -> Self {
        let ground = Arc::new(ground);
        let mut notes = Vec::new();
        let requests = filled_requests(manifest, settings, &mut notes);
        let net = NetGrant::new(Arc::clone(&ground), requests);
        let unrequested = |(pattern, place): (&NetPattern, _)| {
            format!("{place} grants {pattern}, which the manifest does not request")
        };
        notes.extend(net.unrequested().map(unrequested));
        let fs = effective_mounts(&ground.table.fs, &manifest.request.fs, &mut notes);
        let env = effective_env(&ground.table, manifest, &mut notes);
        Self { ground, net, fs, fs_requests: manifest.request.fs.clone(), env, notes }
    }

    /// Returns the same plugin's grant without any power: what is left are its limits.
    pub fn powerless(&self) -> Self {
        Self {
            ground: Arc::clone(&self.ground),
            net: NetGrant::new(Arc::clone(&self.ground), Vec::new()),
            fs: Vec::new(),
            fs_requests: Vec::new(),
            env: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The plugin that holds the grant.
    pub fn plugin(&self) -> &PluginName {
        &self.ground.table.plugin
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

    /// What a call may use.
    pub fn limits(&self) -> &Limits {
        &self.ground.table.limits
    }

    /// What is odd about the grant, a sentence each, for the operator: requests that are void,
    /// entries of the policy that nothing requests.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the plugin can do, a line each, for the person who decides. Names paths of the host.
    pub fn powers(&self) -> Vec<String> {
        let mounts = self.fs.iter().map(|mount| {
            let host = one_line(&mount.host.to_string_lossy());
            format!("{} {host}, seen as {}", mount.access.word(), one_line(&mount.guest))
        });
        let env = self.env.iter().map(|name| format!("see the environment variable {name}"));
        self.net.powers().chain(mounts).chain(env).collect()
    }

    /// Whether the plugin can change anything, or carry anything away. Reading alone is neither.
    pub fn can_change_or_leak(&self) -> bool {
        !self.net.is_empty() || self.can_write()
    }

    pub(crate) fn can_write(&self) -> bool {
        self.fs.iter().any(|mount| mount.access == Access::ReadWrite)
    }

    /// Returns the refusal of a request that would have gone to an address which
    /// [`allows_address`](crate::NetPermit::allows_address) does not allow.
    ///
    /// `what` is the request as records name it, method and URL without its query.
    pub fn deny_address(&self, what: &str, addr: IpAddr) -> Denial {
        refusal::of_address(&self.ground, what, addr)
    }

    /// Returns the refusal of an access to a file by its path in the guest.
    pub fn deny_path(&self, guest_path: &str, wanted: Access) -> Denial {
        refusal::of_path(&self.ground, self, &self.fs_requests, guest_path, wanted)
    }

    /// Returns the policy text that would let the plugin see the files it requests, for a refusal
    /// that only the plugin saw. `guest_path` is where it probably looked, `wanted` what for.
    ///
    /// `None` when it has all that it requests, or requests no files.
    pub fn missing_files(&self, guest_path: Option<&str>, wanted: Access) -> Option<String> {
        refusal::files_text(&self.ground, self, &self.fs_requests, guest_path, wanted)
    }
}

fn filled_requests(
    manifest: &Manifest,
    settings: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Vec<NetPattern> {
    let settings = manifest.settings.with_defaults(settings);
    let mut requests = Vec::new();
    for request in &manifest.request.net {
        match request.allow.fill(&settings) {
            Ok(pattern) => requests.push(pattern),
            Err(error) => {
                let allow = one_line(&request.allow.to_string());
                notes.push(format!("the request for {allow} is void: {error}"));
            }
        }
    }
    requests
}

fn effective_mounts(
    entries: &[FsEntry],
    requests: &[FsRequest],
    notes: &mut Vec<String>,
) -> Vec<FsMount> {
    let mut mounts = Vec::new();
    for entry in entries {
        let covering = requests.iter().filter(|request| request.covers(entry));
        match covering.map(|request| request.access).max() {
            Some(requested) => {
                let access = entry.mount.access.min(requested);
                mounts.push(FsMount { access, ..entry.mount.clone() });
            }
            None => notes.push(format!(
                "{} grants {}, which the manifest does not request",
                entry.place,
                one_line(&entry.written)
            )),
        }
    }
    narrow_overlaps(&mut mounts, notes);
    mounts
}

/// Makes mounts that overlap on the host readable only, where one of them is: a link or a renaming
/// would carry files across otherwise. Policies cannot say such a thing, but requests can make it
/// out of what they say.
fn narrow_overlaps(mounts: &mut [FsMount], notes: &mut Vec<String>) {
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
        notes.push(format!("{guest} is for reading only, as it overlaps a folder that is"));
    }
}

fn effective_env(table: &PluginTable, manifest: &Manifest, notes: &mut Vec<String>) -> Vec<String> {
    let is_requested = |name: &&String| manifest.request.env.iter().any(|r| r.name == **name);
    let (both, unused): (Vec<_>, Vec<_>) = table.env.iter().partition(is_requested);
    notes.extend(unused.into_iter().map(|name| {
        format!("the policy grants the variable {name}, which the manifest does not request")
    }));
    let mut names: Vec<String> = both.into_iter().cloned().collect();
    names.sort();
    names.dedup();
    names
}
