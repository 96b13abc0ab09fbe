//! Accesses to files: entries for the paths that the manifest requests by name.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use sallyport_contract::Denial;

use super::{Learned, Need, Taken, keep, leave_open};
use crate::{
    Access, FsMount, Grant, Manifest,
    edit::{Addition, FsAddition},
    folder::plain_path,
};

/// A path that the manifest names, and the refusal that granting it would lift.
struct Named {
    path: PathBuf,
    access: Access,
    denial: Denial,
}

/// Returns the entries that allow the refused accesses.
pub(super) fn additions(
    learned: &Learned,
    manifest: &Manifest,
    grant: &Grant,
    open: &mut Vec<String>,
) -> Vec<Addition> {
    let mut named = Vec::new();
    for need in learned.needs() {
        keep(path(need, manifest, grant), &mut named, open);
    }
    let folders = outermost(&named);
    for Named { path, access, denial } in &named {
        let around =
            folders.iter().find(|(outer, granted)| path.starts_with(outer) && *granted < *access);
        if let Some((outer, _)) = around {
            let why = format!("it lies in {}, which is needed for reading only", outer.display());
            leave_open(&Denial { why, ..denial.clone() }, open);
        }
    }
    folders.into_iter().filter_map(|(path, access)| addition(path, access)).collect()
}

/// The outermost folders, each with the widest access that it needs. A path inside one of them is
/// covered by it and cannot have another access, because a link could carry a file from one to the
/// other.
fn outermost(named: &[Named]) -> Vec<(&Path, Access)> {
    let mut most: BTreeMap<&Path, Access> = BTreeMap::new();
    for Named { path, access, .. } in named {
        let known = most.entry(path).or_insert(*access);
        *known = (*access).max(*known);
    }
    let mut kept: Vec<(&Path, Access)> = Vec::new();
    for (path, access) in most {
        if !kept.iter().any(|(outer, _)| path.starts_with(outer)) {
            kept.push((path, access));
        }
    }
    kept
}

/// The manifest's path that an access needs, if the policy does not grant it yet.
fn path(need: &Need, manifest: &Manifest, grant: &Grant) -> Taken<Named> {
    let Need::Path { guest_path, access } = need else { return Ok(None) };
    let denial = grant.deny_path(guest_path, *access);
    let Ok(path) = plain_path(&format!("/{}", guest_path.trim_start_matches('/'))) else {
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
        (Some(named), Some(_)) => Ok(Some(Named { path: named.clone(), access: *access, denial })),
        (None, Some(_)) => {
            let why = format!("{}, and only you know which one is meant", denial.why);
            Err(Denial { why, ..denial })
        }
        (_, None) => Err(denial),
    }
}

fn is_denied(mount: &FsMount, path: &Path) -> bool {
    path.strip_prefix(&mount.guest).is_ok_and(|below| mount.deny.denies(below).is_some())
}

fn addition(path: &Path, access: Access) -> Option<Addition> {
    let path = path.to_str()?.to_owned();
    let (mount, deny) = (Some(path.clone()), Vec::new());
    Some(Addition::Fs(FsAddition { path, mount, access, deny, quota: None, sensitive: false }))
}
