//! Accesses to files: entries for the paths that the manifest requests by name.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use sallyport_contract::Denial;

use super::{AdditionResult, PluginRefusals, RefusedAccess, add_or_leave_open, leave_open};
use crate::{
    FsAccess, FsMount, Grant, Manifest,
    addition::{FsAddition, GrantAddition},
    folder::normalize_path,
};

/// A path that the manifest names, and the refusal that granting it would lift.
struct RequestedPath {
    path: PathBuf,
    access: FsAccess,
    denial: Denial,
}

/// Returns the entries that allow the refused accesses.
pub(super) fn file_additions(
    refusals: &PluginRefusals,
    manifest: &Manifest,
    grant: &Grant,
    unresolved: &mut Vec<String>,
) -> Vec<GrantAddition> {
    let mut named = Vec::new();
    for refused_access in refusals.refused_accesses() {
        add_or_leave_open(
            find_requested_path(refused_access, manifest, grant),
            &mut named,
            unresolved,
        );
    }
    let folders = outermost_folders(&named);
    for RequestedPath { path, access, denial } in &named {
        let around =
            folders.iter().find(|(outer, granted)| path.starts_with(outer) && *granted < *access);
        if let Some((outer, _)) = around {
            let reason =
                format!("it lies in {}, which is needed for reading only", outer.display());
            leave_open(&Denial { reason: reason.into(), ..denial.clone() }, unresolved);
        }
    }
    folders.into_iter().filter_map(|(path, access)| fs_addition(path, access)).collect()
}

/// The outermost folders, each with the widest access that it needs. A path inside one of them is
/// covered by it and cannot have another access, because a link could carry a file from one to the
/// other.
fn outermost_folders(named: &[RequestedPath]) -> Vec<(&Path, FsAccess)> {
    let mut most: BTreeMap<&Path, FsAccess> = BTreeMap::new();
    for RequestedPath { path, access, .. } in named {
        let known = most.entry(path).or_insert(*access);
        *known = (*access).max(*known);
    }
    let mut kept: Vec<(&Path, FsAccess)> = Vec::new();
    for (path, access) in most {
        if !kept.iter().any(|(outer, _)| path.starts_with(outer)) {
            kept.push((path, access));
        }
    }
    kept
}

/// The manifest's path that an access needs, if the policy does not grant it yet.
fn find_requested_path(
    refused_access: &RefusedAccess,
    manifest: &Manifest,
    grant: &Grant,
) -> AdditionResult<RequestedPath> {
    let RefusedAccess::Path { guest_path, access } = refused_access else { return Ok(None) };
    let denial = grant.deny_path(guest_path, *access);
    let Ok(path) = normalize_path(&format!("/{}", guest_path.trim_start_matches('/'))) else {
        return Err(denial);
    };
    let around = grant.fs().iter().find(|mount| path.starts_with(&mount.guest));
    if let Some(mount) = around {
        let is_granted = mount.access >= *access && !is_denied(mount, &path);
        return if is_granted { Ok(None) } else { Err(denial) };
    }
    let requests = manifest.request.fs.iter().filter(|request| request.access >= *access);
    let around = requests.filter_map(|r| r.path.as_ref()).filter(|named| path.starts_with(named));
    match (around.max_by_key(|named| named.components().count()), &denial.fix) {
        (Some(named), Some(_)) => {
            Ok(Some(RequestedPath { path: named.clone(), access: *access, denial }))
        }
        (None, Some(_)) => {
            let reason = format!("{}, and only you know which one is meant", denial.reason);
            Err(Denial { reason: reason.into(), ..denial })
        }
        (_, None) => Err(denial),
    }
}

fn is_denied(mount: &FsMount, path: &Path) -> bool {
    path.strip_prefix(&mount.guest)
        .is_ok_and(|below| mount.deny.find_denying_pattern(below).is_some())
}

fn fs_addition(path: &Path, access: FsAccess) -> Option<GrantAddition> {
    let path = path.to_str()?.to_owned();
    let (mount, deny) = (Some(path.clone()), Vec::new());
    Some(GrantAddition::Fs(FsAddition { path, mount, access, deny, quota: None, sensitive: false }))
}
