//! Symbolic links that a guest creates, moves or gives another name.
//!
//! A guest follows no link out of its mount (see [`super::resolve`]), but the user's editor, backup
//! or web server does. So a guest must not leave a link that leads out of its mount, neither by
//! creating it nor by moving it to where its target means something else.
//!
//! A link may have `..` only at the front of its target. Those are resolved from the folder of the
//! link, while a later `..` may come after another link and then leads anywhere.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat},
    io::{self, Errno},
    path::Arg,
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    convert::{file_identity, file_type_of, to_error_code},
    mount::GrantedMount,
    resolve::{DEPTH_MAX, FOLDER_STEP_FLAGS, ResolvedGuestPath},
};

/// Most entries of a moved folder that are searched for links: about a second of work.
const ENTRIES_MAX: usize = 500_000;

/// Makes sure that a new link does not lead out of the mount. The folder's turn is held.
pub(super) fn check_new_symlink(
    granted_mount: &GrantedMount,
    new: &ResolvedGuestPath,
    target: &str,
) -> Result<(), ErrorCode> {
    let depth = folder_depth(granted_mount.mount.root_folder(), &new.folder).unwrap_or(0);
    match target.starts_with('/') || climbs_out(target.as_bytes(), depth) {
        false => Ok(()),
        true => Err(granted_mount.refuse_link(&new.relative_path)),
    }
}

/// Makes sure that an entry that is moved or gets another name is no link that leads out of the
/// mount at the new place, and has none in it. The folder's turn is held.
///
/// Only a link that gets closer to the root can begin to lead out. An absolute link is one of the
/// user's own, and it leads to the same place from anywhere.
pub(super) fn check_moved_symlinks(
    granted_mount: &GrantedMount,
    moved: &Stat,
    (old, old_name): (&ResolvedGuestPath, &OsStr),
    new: &ResolvedGuestPath,
) -> Result<(), ErrorCode> {
    let kind = file_type_of(moved);
    if !matches!(kind, FileType::Directory | FileType::Symlink) {
        return Ok(());
    }
    let root = granted_mount.mount.root_folder();
    let new_depth = folder_depth(root, &new.folder).unwrap_or(0);
    if folder_depth(root, &old.folder).is_some_and(|old_depth| old_depth <= new_depth) {
        return Ok(());
    }
    if kind == FileType::Directory {
        return match keeps_symlinks_inside(&old.folder, old_name, new_depth) {
            true => Ok(()),
            false => Err(granted_mount.refuse_folder_links(&old.relative_path, &new.relative_path)),
        };
    }
    let target = readlinkat(&old.folder, old_name, Vec::new()).map_err(to_error_code)?;
    match climbs_out(target.to_bytes(), new_depth) {
        false => Ok(()),
        true => Err(granted_mount.refuse_link(&new.relative_path)),
    }
}

/// Whether a relative target can lead above the root from a folder at this depth.
fn climbs_out(target: &[u8], depth: usize) -> bool {
    if target.starts_with(b"/") {
        return false;
    }
    let mut steps = target.split(|byte| *byte == b'/').filter(|step| !matches!(*step, b"" | b"."));
    let leading = steps.by_ref().take_while(|step| *step == b"..").count();
    leading > depth || steps.any(|step| step == b"..")
}

/// The current depth of an open folder in the mount. Its path may be out of date, because it can be
/// moved after it was opened. `None` if it is not in the mount any more, or cannot be searched.
fn folder_depth(root: &OwnedFd, folder: &OwnedFd) -> Option<usize> {
    let root_identity = file_identity(&fstat(root).ok()?);
    let flags = FOLDER_STEP_FLAGS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut parent: Option<OwnedFd> = None;
    for depth in 0..=DEPTH_MAX {
        let current = parent.as_ref().unwrap_or(folder);
        if file_identity(&fstat(current).ok()?) == root_identity {
            return Some(depth);
        }
        let above = openat(current, "..", flags, Mode::empty()).ok()?;
        parent = Some(above);
    }
    None
}

/// Whether no link in a folder would lead out of the mount if the folder were in one at this depth.
/// The answer is no for a folder that is too large to find out.
fn keeps_symlinks_inside(parent: &OwnedFd, name: &OsStr, depth: usize) -> bool {
    let Ok(folder) = open_listing(parent, name) else { return false };
    let mut open = vec![folder];
    let mut entries = 0;
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.read() else {
            open.pop();
            continue;
        };
        let (Ok(entry), Ok(parent)) = (entry, folder.fd()) else { return false };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        entries += 1;
        if entries > ENTRIES_MAX {
            return false;
        }
        // An entry that another program has just removed leads nowhere.
        let Ok(stat) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        match file_type_of(&stat) {
            FileType::Symlink => {
                let target = readlinkat(parent, name, Vec::new());
                let link_depth = depth + open.len();
                if target.is_ok_and(|target| climbs_out(target.to_bytes(), link_depth)) {
                    return false;
                }
            }
            FileType::Directory => match open_listing(parent, name) {
                Ok(below) if open.len() < DEPTH_MAX => open.push(below),
                // No guest can have written in a folder that it may not list.
                Err(Errno::ACCESS | Errno::NOENT) => {}
                Ok(_) | Err(_) => return false,
            },
            _ => {}
        }
    }
    true
}

fn open_listing(parent: impl AsFd, name: impl Arg) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).and_then(Dir::new)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        path::{Path, PathBuf},
    };

    use super::*;

    fn open(path: impl AsRef<Path>) -> OwnedFd {
        fs::File::open(path).unwrap().into()
    }

    #[test]
    fn links_that_lead_out_are_told_from_those_that_stay() {
        let rows = [
            ("a", 0, false),
            ("../a", 1, false),
            ("./.././a", 1, false),
            ("../../a", 2, false),
            (".", 0, false),
            ("", 0, false),
            ("...", 0, false),
            ("/../a", 0, false),
            ("..", 0, true),
            ("../a", 0, true),
            ("../../a", 1, true),
            ("a/../../b", 0, true),
            ("../../mount/a", 1, true),
        ];
        for (target, depth, want) in rows {
            assert_eq!(climbs_out(target.as_bytes(), depth), want, "{target:?} {depth}");
        }
    }

    /// The first name can be a link itself, and then the `..` leaves another folder.
    #[test]
    fn a_step_up_after_a_name_is_not_counted_on() {
        for target in ["a/..", "a/../b", "../a/../b", "a/./..", "a//.."] {
            assert!(climbs_out(target.as_bytes(), 5), "{target:?}");
        }
    }

    #[test]
    fn the_depth_of_a_folder_is_that_of_its_current_place() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { temp.path().join(name) };
        fs::create_dir_all(path("root/a/b/c")).unwrap();
        let (root, moved) = (open(path("root")), open(path("root/a/b/c")));
        assert_eq!(folder_depth(&root, &root), Some(0));
        assert_eq!(folder_depth(&root, &moved), Some(3));
        fs::rename(path("root/a/b/c"), path("root/c")).unwrap();
        assert_eq!(folder_depth(&root, &moved), Some(1));
        fs::rename(path("root/c"), path("c")).unwrap();
        assert_eq!(folder_depth(&root, &moved), None);
    }

    #[test]
    fn a_folder_is_searched_for_links_that_would_lead_out() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { temp.path().join(name) };
        fs::create_dir_all(path("moved/sub")).unwrap();
        symlink("../../x", path("moved/sub/link")).unwrap();
        symlink("/etc", path("moved/absolute")).unwrap();
        fs::write(path("moved/file"), "").unwrap();
        let parent = open(temp.path());
        let keeps = |depth| keeps_symlinks_inside(&parent, OsStr::new("moved"), depth);
        assert!(keeps(0), "it leads to where the folder is");
        symlink("../../../x", path("moved/sub/far")).unwrap();
        assert!(!keeps(0));
        assert!(keeps(1));
    }
}
