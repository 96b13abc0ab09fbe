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
    fix::{Ground, TableText},
    folder::{Access, FsEntry, FsMount, conflict, entry_text, plain_path},
    grant::Grant,
    net::{self, entry::Allow, grant::sentence, pattern::Target},
    request::FsRequest,
    source::{Place, quoted},
};

/// The path in a fix when only the operator knows the folder.
const PLACEHOLDER: &str = "/path/to/folder";

/// Returns the refusal of a request whose host name resolved to a forbidden address.
pub(crate) fn of_address(ground: &Ground, what: &str, addr: IpAddr) -> Denial {
    let addr = addr.to_canonical();
    let plugin = &ground.table().plugin;
    let act = what.strip_prefix(&format!("{plugin} may not ")).unwrap_or(what);
    let (host, fix) = match act.split_once(' ').map(|(method, url)| (method, Url::parse(url))) {
        Some((method, Ok(url))) => {
            (url.host_str().map(str::to_owned), address_fix(ground, method, &url, addr))
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
    Denial { what: sentence(plugin, act), why, fix, nobody_to_ask: false }
}

/// Returns the text that lets the entry for the request reach the address, if its host is that
/// address or `localhost`. For any other name there is no such text, because the owner of the name
/// chooses the address.
fn address_fix(ground: &Ground, method: &str, url: &Url, addr: IpAddr) -> Option<String> {
    let target = Target::new(method, url).ok()?;
    let matches = |allow: &&Allow| allow.pattern.matches(&target);
    let found = ground.table().net.allows.iter().find(matches)?;
    let Allow { pattern, decision, .. } = found;
    let own = pattern.host().own_ranges()?;
    own.iter().find(|range| range.contains(&addr))?;
    let text = net::entry::entry_text(pattern, &own, *decision);
    let mut table = TableText::new(ground);
    // An entry of the administrator's file stays; the user's own entry is added.
    match ground.users().net.allows.iter().position(|allow| allow == found) {
        Some(index) => table.net[index] = text,
        None => table.net.push(text),
    }
    Some(table.with_rule())
}

/// Returns the refusal of an access to a file.
pub(crate) fn of_path(
    ground: &Ground,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: &str,
    wanted: Access,
) -> Denial {
    let verb = match wanted {
        Access::Read => "read",
        Access::ReadWrite => "change",
    };
    let (why, fix) = match plain_path(&format!("/{}", guest_path.trim_start_matches('/'))) {
        Ok(path) => match entry_around(&ground.table().fs, &path) {
            Some(entry) => match denying(&ground.table().fs, entry, &path) {
                Some((glob, place)) => (format!("denied by {} at {place}", quoted(glob)), None),
                None => widen(ground, entry, requests, wanted),
            },
            None => add(ground, grant, requests, &path, wanted),
        },
        Err(error) => (error.to_string(), None),
    };
    let what = sentence(&ground.table().plugin, &format!("{verb} {guest_path}"));
    Denial { what, why, fix, nobody_to_ask: false }
}

/// Returns the text that grants a plugin the files it requests, when only the plugin itself noticed
/// that they are missing. `guest_path` is the path it probably accessed.
pub(crate) fn files_text(
    ground: &Ground,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: Option<&str>,
    wanted: Access,
) -> Option<String> {
    // A plugin accesses a file that it requests by name under that same name.
    let granted = |path: &Path| {
        let entries = ground.table().fs.iter();
        entries.map(|entry| &entry.mount).any(|mount| {
            let below = path.strip_prefix(&mount.host);
            below.is_ok_and(|below| Path::new(&mount.guest).join(below) == path)
        })
    };
    let named = requests.iter().filter_map(|r| Some((r.path.as_ref()?, r.access)));
    let missing: Vec<_> = named.filter(|(path, _)| !granted(path)).collect();
    if missing.is_empty() {
        return of_path(ground, grant, requests, guest_path.unwrap_or("/folder"), wanted).fix;
    }
    let table = with_named(ground, &missing)?;
    let reads_only = missing.iter().all(|(_, access)| *access == Access::Read);
    let is_harmless = reads_only && !grant.can_change_or_leak();
    Some(if is_harmless { table.harmless() } else { table.with_rule() })
}

/// Returns the table with entries for the paths that a plugin requests by name, each mounted at its
/// own path.
fn with_named<'g>(ground: &'g Ground, named: &[(&PathBuf, Access)]) -> Option<TableText<'g>> {
    let mut table = TableText::new(ground);
    let own = &ground.users().fs;
    let misplaced = |entry: &&FsEntry| named.iter().any(|(path, _)| **path == entry.mount.host);
    let goes = |entry: &&FsEntry| own.contains(entry) && misplaced(entry);
    table.fs = own.iter().filter(|entry| !misplaced(entry)).map(ToString::to_string).collect();
    // A folder includes everything inside it.
    let is_inner = |path: &Path| named.iter().any(|(o, _)| *o != path && path.starts_with(o));
    for (path, access) in named.iter().filter(|(path, _)| !is_inner(path)) {
        let written = path.to_str()?;
        let mount = FsMount::plain(path.to_path_buf(), written.to_owned(), *access);
        let others = ground.table().fs.iter().filter(|entry| !goes(entry));
        if conflict(others, written, &mount).is_some() {
            return None;
        }
        table.fs.push(entry_text(written, &mount));
    }
    Some(table)
}

type WhyAndFix = (String, Option<String>);

fn entry_around<'g>(entries: &'g [FsEntry], path: &Path) -> Option<&'g FsEntry> {
    entries.iter().find(|entry| path.starts_with(&entry.mount.guest))
}

/// The pattern that denies a guest path, and the place of its entry: the entry that contains the
/// path, or another one whose folder contains the file.
fn denying<'g>(
    entries: &'g [FsEntry],
    around: &FsEntry,
    path: &Path,
) -> Option<(&'g str, &'g Place)> {
    let file = around.mount.host.join(path.strip_prefix(&around.mount.guest).ok()?);
    entries.iter().find_map(|entry| {
        let below = file.strip_prefix(&entry.mount.host).ok()?;
        Some((entry.mount.deny.denies(below)?, &entry.place))
    })
}

/// The refusal of a path in a granted folder, and the text that widens the folder's access.
fn widen(ground: &Ground, entry: &FsEntry, requests: &[FsRequest], wanted: Access) -> WhyAndFix {
    let requested = requests.iter().filter(|request| request.covers(entry));
    match requested.map(|request| request.access).max() {
        None => ("its manifest does not request it".to_owned(), None),
        Some(most) if most < wanted => ("its manifest requests to read it only".to_owned(), None),
        Some(_) if entry.mount.access < wanted => {
            let why = format!("the grant at {} is for reading only", entry.place);
            (why, widened_text(ground, entry, wanted))
        }
        Some(_) => ("no grant covers it".to_owned(), None),
    }
}

fn widened_text(ground: &Ground, entry: &FsEntry, access: Access) -> Option<String> {
    // A fix cannot change an entry of another file than the user's.
    let index = ground.users().fs.iter().position(|own| own == entry)?;
    let mount = FsMount { access, ..entry.mount.clone() };
    let others = ground.table().fs.iter().filter(|other| *other != entry);
    if conflict(others, &entry.written, &mount).is_some() {
        return None;
    }
    let mut table = TableText::new(ground);
    table.fs[index] = FsEntry { mount, ..entry.clone() }.to_string();
    Some(table.with_rule())
}

/// The refusal of a path outside all granted folders, and the text that adds a folder.
fn add(
    ground: &Ground,
    grant: &Grant,
    requests: &[FsRequest],
    guest_path: &Path,
    wanted: Access,
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
    let why = match ground.table().fs.is_empty() {
        true => "its policy grants no folder",
        false => "no grant covers it",
    };
    (why.to_owned(), added_text(ground, grant, request, guest_path, wanted))
}

fn added_text(
    ground: &Ground,
    grant: &Grant,
    request: &FsRequest,
    guest_path: &Path,
    wanted: Access,
) -> Option<String> {
    let mounts = match &request.path {
        Some(path) => vec![path.clone()],
        None => vec![first_folder(guest_path)?, guest_path.to_owned()],
    };
    let host = request.path.clone().unwrap_or_else(|| PathBuf::from(PLACEHOLDER));
    let written = host.to_str()?.to_owned();
    let mount = mounts.into_iter().find_map(|guest| {
        let guest = guest.to_str()?.to_owned();
        let mount = FsMount::plain(host.clone(), guest, wanted);
        conflict(&ground.table().fs, &written, &mount).is_none().then_some(mount)
    })?;
    let mut table = TableText::new(ground);
    table.fs.push(entry_text(&written, &mount));
    let is_harmless = mount.access == Access::Read && !grant.can_change_or_leak();
    Some(if is_harmless { table.harmless() } else { table.with_rule() })
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
