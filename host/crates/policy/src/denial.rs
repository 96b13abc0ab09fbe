//! Refusals of all that a plugin uses: files, addresses, capabilities, pages and secrets.
//!
//! Each states what was refused, why, and the change to the policy that would allow it, if there is
//! one.

mod capability;
mod secret;

use std::{
    net::IpAddr,
    path::{Component, Path, PathBuf},
};

use sallyport_contract::fix::FOLDER_PLACEHOLDER;
use sallyport_contract::{
    Decision, Denial, DenialReason, DenialSubject, GrantedScope, PolicyFix, RequestedScope,
};
use url::{Host, Url};

use crate::{
    addition::{FsAddition, GrantAddition, NetAddition, NetReachText},
    fix::PluginTableText,
    folder::{FsAccess, FsEntry, FsMount, find_conflict, fs_entry_toml, normalize_path},
    glob::GlobSet,
    grant::{Grant, NetPermit},
    net::{
        address::literal_addresses,
        entry::{NetAllowEntry, net_entry_toml},
        pattern::RequestTarget,
        request_text::request_subject,
    },
    policy_context::PolicyContext,
    request::FsRequest,
    source::SourceLocation,
};

use self::secret::secret_denial;

/// The path in a fix when only the operator knows the folder.
const PLACEHOLDER: &str = "/path/to/folder";

impl Grant {
    /// Returns the refusal of a request to an address that
    /// [`allows_address`](crate::NetPermit::allows_address) does not allow.
    pub fn deny_address(&self, method: &str, url: &Url, addr: IpAddr) -> Denial {
        address_denial(self.policy_context(), method, url, addr)
    }

    /// Checks a request before anything is resolved or dialled: method, scheme, host, port, path,
    /// and the address if the host determines it, as a literal or `localhost` does.
    ///
    /// # Errors
    ///
    /// The request is not permitted. The refusal states why, and how to lift it.
    pub fn check_request(&self, method: &str, url: &Url) -> Result<NetPermit<'_>, Denial> {
        let permit = self.net().check_request(method, url);
        let permit = permit.map_err(|denial| self.compare_fix(denial))?;
        let own = literal_addresses(url);
        match own.first() {
            Some(addr) if !own.iter().any(|addr| permit.allows_address(*addr)) => {
                Err(self.deny_address(method, url, *addr))
            }
            Some(_) | None => Ok(permit),
        }
    }

    /// Returns the refusal of an access to a file, by its guest path.
    pub fn deny_path(&self, guest_path: &str, wanted: FsAccess) -> Denial {
        self.compare_fix(path_denial(
            self.policy_context(),
            self,
            &self.manifest_requests().fs,
            guest_path,
            wanted,
        ))
    }

    /// Returns the fix that grants the files the plugin requests, for a refusal that only
    /// the plugin saw. `guest_path` is the path it probably accessed, `wanted` the access it needs.
    ///
    /// `None` if the plugin has all files that it requests, or requests none.
    pub fn missing_files_fix(
        &self,
        guest_path: Option<&str>,
        wanted: FsAccess,
    ) -> Option<PolicyFix> {
        files_fix(self.policy_context(), self, &self.manifest_requests().fs, guest_path, wanted)
    }

    /// Returns the refusal of a secret that the plugin tried to read.
    pub fn deny_secret(&self, name: &str) -> Denial {
        let requests = &self.manifest_requests().secrets;
        let denial = secret_denial(self.policy_context(), requests, name);
        self.compare_fix(denial)
    }

    /// Notes in a refusal whether its fix grants all that the manifest requests and lacks, so that
    /// the command for it is short.
    pub(crate) fn compare_fix(&self, mut denial: Denial) -> Denial {
        if let Some(fix) = &mut denial.fix {
            let requested = self.requested_grants().additions;
            let requested: Vec<_> = requested.iter().map(GrantAddition::to_fix_grant).collect();
            fix.is_all_requested = !requested.is_empty()
                && requested.len() == fix.grants.len()
                && requested.iter().all(|grant| fix.grants.contains(grant));
        }
        denial
    }
}

/// Returns the refusal of a request whose host name resolved to a forbidden address.
fn address_denial(policy_context: &PolicyContext, method: &str, url: &Url, addr: IpAddr) -> Denial {
    let address = addr.to_canonical();
    let fix = address_fix(policy_context, method, url, address);
    let is_name = matches!(url.host(), Some(Host::Domain(_)));
    let host = url.host_str().filter(|_| is_name).map(str::to_owned);
    let reason = DenialReason::PrivateAddress { address, host, needs_range: fix.is_none() };
    let plugin = &policy_context.effective_table().plugin;
    Denial::new(request_subject(plugin, method, url), reason).with_fix(fix)
}

/// Returns the fix that lets the entry for the request reach the address, if its host is that
/// address or `localhost`. For any other name there is no such fix, because the owner of the name
/// chooses the address.
fn address_fix(
    policy_context: &PolicyContext,
    method: &str,
    url: &Url,
    addr: IpAddr,
) -> Option<PolicyFix> {
    let target = RequestTarget::new(method, url).ok()?;
    let matches = |allow: &&NetAllowEntry| allow.pattern.matches(&target);
    let found = policy_context.effective_table().net.allows.iter().find(matches)?;
    let NetAllowEntry { pattern, decision, .. } = found;
    let own = pattern.host().determined_ranges()?;
    own.iter().find(|range| range.contains(&addr))?;
    let text = net_entry_toml(pattern, &own, *decision);
    let mut table = PluginTableText::new(policy_context);
    // An entry of the administrator's file stays; the user's own entry is added.
    match policy_context.user_table().net.allows.iter().position(|allow| allow == found) {
        Some(index) => table.net[index] = text,
        None => table.net.push(text),
    }
    table.additions.push(GrantAddition::Net(NetAddition {
        pattern: pattern.to_string(),
        decision: Some(*decision).filter(|decision| *decision != Decision::Allow),
        reach: NetReachText::HostAddresses,
    }));
    Some(table.into_fix(true))
}

/// Returns the refusal of an access to a file.
fn path_denial(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: &str,
    wanted: FsAccess,
) -> Denial {
    let table = policy_context.effective_table();
    let (reason, fix) = match normalize_path(&format!("/{}", guest_path.trim_start_matches('/'))) {
        Ok(path) => match entry_containing_path(&table.fs, &path) {
            Some(entry) => match find_denying_pattern(&table.fs, entry, &path) {
                Some((glob, place)) => {
                    let pattern = Some(glob.to_owned());
                    (DenialReason::DeniedByEntry { pattern, place: place.into() }, None)
                }
                None if is_project_file(entry, &path) => {
                    (PROJECT_FILE_REASON.to_owned().into(), None)
                }
                None => explain_narrow_access(policy_context, entry, requests, wanted),
            },
            None => explain_ungranted_path(policy_context, grant, requests, &path, wanted),
        },
        Err(error) => (error.to_string().into(), None),
    };
    let subject = DenialSubject::Path {
        plugin: table.plugin.clone(),
        path: guest_path.to_owned(),
        write: wanted == FsAccess::ReadWrite,
    };
    Denial::new(subject, reason).with_fix(fix)
}

/// Returns the fix that grants a plugin the files it requests, when only the plugin itself noticed
/// that they are missing. `guest_path` is the path it probably accessed.
fn files_fix(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: Option<&str>,
    wanted: FsAccess,
) -> Option<PolicyFix> {
    // A plugin accesses a file that it requests by name under that same name.
    let granted = |path: &Path| {
        let entries = policy_context.effective_table().fs.iter();
        entries.map(|entry| &entry.mount).any(|mount| {
            let below = path.strip_prefix(&mount.host);
            below.is_ok_and(|below| Path::new(&mount.guest).join(below) == path)
        })
    };
    let named = requests.iter().filter_map(|r| Some((r.path.as_ref()?, r.access)));
    let missing: Vec<_> = named.filter(|(path, _)| !granted(path)).collect();
    if missing.is_empty() {
        return path_denial(
            policy_context,
            grant,
            requests,
            guest_path.unwrap_or("/folder"),
            wanted,
        )
        .fix
        .map(|fix| *fix);
    }
    let table = table_with_requested_paths(policy_context, &missing)?;
    let reads_only = missing.iter().all(|(_, access)| *access == FsAccess::Read);
    let is_harmless = reads_only && !grant.can_change_or_leak();
    Some(table.into_fix(!is_harmless))
}

/// Returns the table with entries for the paths that a plugin requests by name, each mounted at its
/// own path.
fn table_with_requested_paths<'g>(
    policy_context: &'g PolicyContext,
    named: &[(&PathBuf, FsAccess)],
) -> Option<PluginTableText<'g>> {
    let mut table = PluginTableText::new(policy_context);
    let own = &policy_context.user_table().fs;
    let misplaced = |entry: &&FsEntry| named.iter().any(|(path, _)| **path == entry.mount.host);
    let goes = |entry: &&FsEntry| own.contains(entry) && misplaced(entry);
    table.fs = own.iter().filter(|entry| !misplaced(entry)).map(ToString::to_string).collect();
    // A folder includes everything inside it.
    let is_inner = |path: &Path| named.iter().any(|(o, _)| *o != path && path.starts_with(o));
    for (path, access) in named.iter().filter(|(path, _)| !is_inner(path)) {
        let written = path.to_str()?;
        let mount = FsMount::new_plain(path.to_path_buf(), written.to_owned(), *access);
        let others = policy_context.effective_table().fs.iter().filter(|entry| !goes(entry));
        if find_conflict(others, written, &mount).is_some() {
            return None;
        }
        table.fs.push(fs_entry_toml(written, &mount));
        table.additions.push(folder_addition(written, &mount));
    }
    Some(table)
}

/// Why no plugin may use a project's own files.
const PROJECT_FILE_REASON: &str = "the policy in a project's .sallyport folder applies to plugins, so no plugin may use that folder";

/// Whether a guest path is one of a project's own files in a granted folder.
fn is_project_file(entry: &FsEntry, path: &Path) -> bool {
    let below = path.strip_prefix(&entry.mount.guest);
    below.is_ok_and(|below| GlobSet::project_files().find_denying_pattern(below).is_some())
}

/// The entry for a mount, as `policy grant` adds it.
fn folder_addition(path: &str, mount: &FsMount) -> GrantAddition {
    GrantAddition::Fs(FsAddition {
        path: path.to_owned(),
        mount: Some(mount.guest.clone()),
        access: mount.access,
        deny: Vec::new(),
        quota: None,
        sensitive: false,
    })
}

/// The reason of a refusal, and the change that would lift it.
type ReasonAndFix = (DenialReason, Option<PolicyFix>);

fn entry_containing_path<'g>(entries: &'g [FsEntry], path: &Path) -> Option<&'g FsEntry> {
    entries.iter().find(|entry| path.starts_with(&entry.mount.guest))
}

/// The pattern that denies a guest path, and the place of its entry: the entry that contains the
/// path, or another one whose folder contains the file.
fn find_denying_pattern<'g>(
    entries: &'g [FsEntry],
    around: &FsEntry,
    path: &Path,
) -> Option<(&'g str, &'g SourceLocation)> {
    let file = around.mount.host.join(path.strip_prefix(&around.mount.guest).ok()?);
    entries.iter().find_map(|entry| {
        let below = file.strip_prefix(&entry.mount.host).ok()?;
        Some((entry.mount.deny.find_denying_pattern(below)?, &entry.place))
    })
}

/// The refusal of a path in a granted folder, and the fix that widens the folder's access.
fn explain_narrow_access(
    policy_context: &PolicyContext,
    entry: &FsEntry,
    requests: &[FsRequest],
    wanted: FsAccess,
) -> ReasonAndFix {
    let requested = requests.iter().filter(|request| request.covers_entry(entry));
    match requested.map(|request| request.access).max() {
        None => (DenialReason::NotRequested { capability: None }, None),
        Some(most) if most < wanted => (DenialReason::RequestedLess(RequestedScope::Reading), None),
        Some(_) if entry.mount.access < wanted => {
            let reason = DenialReason::GrantedLess(GrantedScope::Reading((&entry.place).into()));
            (reason, widened_access_fix(policy_context, entry, wanted))
        }
        Some(_) => (DenialReason::GrantedLess(GrantedScope::NotThis), None),
    }
}

fn widened_access_fix(
    policy_context: &PolicyContext,
    entry: &FsEntry,
    access: FsAccess,
) -> Option<PolicyFix> {
    // A fix cannot change an entry of another file than the user's.
    let index = policy_context.user_table().fs.iter().position(|own| own == entry)?;
    let mount = FsMount { access, ..entry.mount.clone() };
    let others = policy_context.effective_table().fs.iter().filter(|other| *other != entry);
    if find_conflict(others, &entry.path_text, &mount).is_some() {
        return None;
    }
    let mut table = PluginTableText::new(policy_context);
    table.additions.push(folder_addition(&entry.path_text, &mount));
    table.fs[index] = FsEntry { mount, ..entry.clone() }.to_string();
    Some(table.into_fix(true))
}

/// The refusal of a path outside all granted folders, and the fix that adds a folder.
fn explain_ungranted_path(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: &Path,
    wanted: FsAccess,
) -> ReasonAndFix {
    let names_it = |request: &&FsRequest| {
        request.path.as_ref().is_none_or(|path| guest_path.starts_with(path))
    };
    let mut fitting: Vec<_> = requests.iter().filter(names_it).collect();
    fitting.retain(|request| request.access >= wanted);
    // A request that names the path is more specific than one that leaves the choice to the
    // operator.
    fitting.sort_by_key(|request| request.path.is_none());
    let Some(request) = fitting.first() else {
        return (DenialReason::NotRequested { capability: None }, None);
    };
    let scope = match policy_context.effective_table().fs.is_empty() {
        true => GrantedScope::NoFolder,
        false => GrantedScope::NotThis,
    };
    (
        DenialReason::GrantedLess(scope),
        added_folder_fix(policy_context, grant, request, guest_path, wanted),
    )
}

fn added_folder_fix(
    policy_context: &PolicyContext,
    grant: &Grant,
    request: &FsRequest,
    guest_path: &Path,
    wanted: FsAccess,
) -> Option<PolicyFix> {
    let mounts = match &request.path {
        Some(path) => vec![path.clone()],
        None => vec![first_folder(guest_path)?, guest_path.to_owned()],
    };
    let host = request.path.clone().unwrap_or_else(|| PathBuf::from(PLACEHOLDER));
    let written = host.to_str()?.to_owned();
    let mount = mounts.into_iter().find_map(|guest| {
        let guest = guest.to_str()?.to_owned();
        let mount = FsMount::new_plain(host.clone(), guest, wanted);
        find_conflict(&policy_context.effective_table().fs, &written, &mount)
            .is_none()
            .then_some(mount)
    })?;
    let mut table = PluginTableText::new(policy_context);
    table.fs.push(fs_entry_toml(&written, &mount));
    let chosen = request.path.as_ref().map_or(FOLDER_PLACEHOLDER, |_| &written);
    table.additions.push(folder_addition(chosen, &mount));
    let is_harmless = mount.access == FsAccess::Read && !grant.can_change_or_leak();
    Some(table.into_fix(!is_harmless))
}

/// The top folder of a guest path, the best mount point for a folder.
fn first_folder(path: &Path) -> Option<PathBuf> {
    let name = path.components().find_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    })?;
    Some(Path::new("/").join(name))
}
