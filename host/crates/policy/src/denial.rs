//! Refusals for the code that opens files and dials addresses.
//!
//! Each states what was refused, why, and the policy text that would allow it, if a policy can.

use std::{
    net::IpAddr,
    path::{Component, Path, PathBuf},
};

use sallyport_contract::Denial;
use url::Url;

use crate::{
    fix::{PluginTableText, PolicyContext},
    folder::{FsAccess, FsEntry, FsMount, find_conflict, fs_entry_toml, normalize_path},
    grant::Grant,
    net::{self, entry::NetAllowEntry, grant::refusal_sentence, pattern::RequestTarget},
    request::FsRequest,
    source::{SourceLocation, quoted},
};

/// The path in a fix when only the operator knows the folder.
const PLACEHOLDER: &str = "/path/to/folder";

/// Returns the refusal of a request whose host name resolved to a forbidden address.
pub(crate) fn address_denial(policy_context: &PolicyContext, what: &str, addr: IpAddr) -> Denial {
    let addr = addr.to_canonical();
    let plugin = &policy_context.effective_table().plugin;
    let action = what.strip_prefix(&format!("{plugin} may not ")).unwrap_or(what);
    let (host, fix) = match action.split_once(' ').map(|(method, url)| (method, Url::parse(url))) {
        Some((method, Ok(url))) => {
            (url.host_str().map(str::to_owned), address_fix(policy_context, method, &url, addr))
        }
        Some((_, Err(_))) | None => (None, None),
    };
    let why = match host {
        Some(host) if host != addr.to_string() && fix.is_none() => format!(
            "{host} is at {addr}, which is not a public address; only an entry with to-private \
             and a range of your choice reaches it"
        ),
        Some(host) if host != addr.to_string() => {
            format!("{host} is at {addr}, which is not a public address")
        }
        Some(_) | None => format!("{addr} is not a public address"),
    };
    Denial { what: refusal_sentence(plugin, action), why, fix, nobody_to_ask: false }
}

/// Returns the text that lets the entry for the request reach the address, if its host is that
/// address or `localhost`. For any other name there is no such text, because the owner of the name
/// chooses the address.
fn address_fix(
    policy_context: &PolicyContext,
    method: &str,
    url: &Url,
    addr: IpAddr,
) -> Option<String> {
    let target = RequestTarget::new(method, url).ok()?;
    let matches = |allow: &&NetAllowEntry| allow.pattern.matches(&target);
    let found = policy_context.effective_table().net.allows.iter().find(matches)?;
    let NetAllowEntry { pattern, decision, .. } = found;
    let own = pattern.host().determined_ranges()?;
    own.iter().find(|range| range.contains(&addr))?;
    let text = net::entry::net_entry_toml(pattern, &own, *decision);
    let mut table = PluginTableText::new(policy_context);
    // An entry of the administrator's file stays; the user's own entry is added.
    match policy_context.user_table().net.allows.iter().position(|allow| allow == found) {
        Some(index) => table.net[index] = text,
        None => table.net.push(text),
    }
    Some(table.text_with_rule())
}

/// Returns the refusal of an access to a file.
pub(crate) fn path_denial(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: &str,
    wanted: FsAccess,
) -> Denial {
    let verb = match wanted {
        FsAccess::Read => "read",
        FsAccess::ReadWrite => "change",
    };
    let (why, fix) = match normalize_path(&format!("/{}", guest_path.trim_start_matches('/'))) {
        Ok(path) => match entry_containing_path(&policy_context.effective_table().fs, &path) {
            Some(entry) => {
                match find_denying_pattern(&policy_context.effective_table().fs, entry, &path) {
                    Some((glob, place)) => (format!("denied by {} at {place}", quoted(glob)), None),
                    None => explain_narrow_access(policy_context, entry, requests, wanted),
                }
            }
            None => explain_ungranted_path(policy_context, grant, requests, &path, wanted),
        },
        Err(error) => (error.to_string(), None),
    };
    let what =
        refusal_sentence(&policy_context.effective_table().plugin, &format!("{verb} {guest_path}"));
    Denial { what, why, fix, nobody_to_ask: false }
}

/// Returns the text that grants a plugin the files it requests, when only the plugin itself noticed
/// that they are missing. `guest_path` is the path it probably accessed.
pub(crate) fn files_fix_text(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: Option<&str>,
    wanted: FsAccess,
) -> Option<String> {
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
        .fix;
    }
    let table = table_with_requested_paths(policy_context, &missing)?;
    let reads_only = missing.iter().all(|(_, access)| *access == FsAccess::Read);
    let is_harmless = reads_only && !grant.can_change_or_leak();
    Some(if is_harmless { table.text_without_rule() } else { table.text_with_rule() })
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
    }
    Some(table)
}

type WhyAndFix = (String, Option<String>);

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

/// The refusal of a path in a granted folder, and the text that widens the folder's access.
fn explain_narrow_access(
    policy_context: &PolicyContext,
    entry: &FsEntry,
    requests: &[FsRequest],
    wanted: FsAccess,
) -> WhyAndFix {
    let requested = requests.iter().filter(|request| request.covers_entry(entry));
    match requested.map(|request| request.access).max() {
        None => ("its manifest does not request it".to_owned(), None),
        Some(most) if most < wanted => ("its manifest requests to read it only".to_owned(), None),
        Some(_) if entry.mount.access < wanted => {
            let why = format!("the grant at {} is for reading only", entry.place);
            (why, widened_access_fix(policy_context, entry, wanted))
        }
        Some(_) => ("no grant covers it".to_owned(), None),
    }
}

fn widened_access_fix(
    policy_context: &PolicyContext,
    entry: &FsEntry,
    access: FsAccess,
) -> Option<String> {
    // A fix cannot change an entry of another file than the user's.
    let index = policy_context.user_table().fs.iter().position(|own| own == entry)?;
    let mount = FsMount { access, ..entry.mount.clone() };
    let others = policy_context.effective_table().fs.iter().filter(|other| *other != entry);
    if find_conflict(others, &entry.path_text, &mount).is_some() {
        return None;
    }
    let mut table = PluginTableText::new(policy_context);
    table.fs[index] = FsEntry { mount, ..entry.clone() }.to_string();
    Some(table.text_with_rule())
}

/// The refusal of a path outside all granted folders, and the text that adds a folder.
fn explain_ungranted_path(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: &Path,
    wanted: FsAccess,
) -> WhyAndFix {
    let names_it = |request: &&FsRequest| {
        request.path.as_ref().is_none_or(|path| guest_path.starts_with(path))
    };
    let mut fitting: Vec<_> = requests.iter().filter(names_it).collect();
    fitting.retain(|request| request.access >= wanted);
    // A request that names the path is more specific than one that leaves the choice to the
    // operator.
    fitting.sort_by_key(|request| request.path.is_none());
    let Some(request) = fitting.first() else {
        return ("its manifest does not request it".to_owned(), None);
    };
    let why = match policy_context.effective_table().fs.is_empty() {
        true => "its policy grants no folder",
        false => "no grant covers it",
    };
    (why.to_owned(), added_folder_fix(policy_context, grant, request, guest_path, wanted))
}

fn added_folder_fix(
    policy_context: &PolicyContext,
    grant: &Grant,
    request: &FsRequest,
    guest_path: &Path,
    wanted: FsAccess,
) -> Option<String> {
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
    let is_harmless = mount.access == FsAccess::Read && !grant.can_change_or_leak();
    Some(if is_harmless { table.text_without_rule() } else { table.text_with_rule() })
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
