//! Changes to files and folders: creating, linking, renaming, removing, and setting times.
//!
//! Every change checks the true names of all paths that it touches, and is made while the folder's
//! turn is held.

use std::{ffi::OsStr, sync::Arc};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, Stat, Timestamps, futimens, linkat, mkdirat, renameat, symlinkat,
        unlinkat, utimensat,
    },
    io::Errno,
};
use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    convert::{code, file_key, has_more_names, kind},
    look::stat_of,
    measure::entry_cost,
    mount::Present,
    opened::Opened,
    resolve::{LastLink, Spot, resolve},
    shelf::{ENTRY_BYTES, Turn},
};

/// The mode of a new folder, which the process's umask narrows.
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o777);

/// Resolves a path that may be changed. A link at the end is the target itself.
fn place(present: &Present, from: &Opened, path: &str) -> Result<Spot, ErrorCode> {
    let spot = resolve(present, from, path, LastLink::Meant, FsAccess::ReadWrite)?;
    present.may_change(&spot.below)?;
    Ok(spot)
}

/// The name of the entry in its folder. A path that names the folder itself has none and is
/// refused.
fn name(spot: &Spot) -> Result<&OsStr, ErrorCode> {
    spot.name.as_deref().ok_or(ErrorCode::Invalid)
}

/// The name for an entry that is not a folder. A path that ends in a slash names a folder, so no
/// file or link is created there.
fn new_name(spot: &Spot) -> Result<&OsStr, ErrorCode> {
    let name = name(spot)?;
    if !spot.is_folder {
        return Ok(name);
    }
    Err(match stat_of(spot) {
        Ok(found) if kind(&found) == FileType::Directory => ErrorCode::Exist,
        Ok(_) => ErrorCode::NotDirectory,
        Err(error) => error,
    })
}

/// Creates one entry, charges it and records it.
fn make(
    present: &Present,
    turn: &Turn<'_>,
    spot: &Spot,
    act: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), ErrorCode> {
    present.grow(turn, ENTRY_BYTES)?;
    act().map_err(|error| {
        present.shrink(turn, ENTRY_BYTES);
        code(error)
    })?;
    present.changed(&spot.below);
    Ok(())
}

pub(super) fn make_folder(present: &Present, from: &Opened, path: &str) -> Result<(), ErrorCode> {
    let spot = place(present, from, path)?;
    let name = spot.name.as_deref().ok_or(ErrorCode::Exist)?;
    let turn = present.turn();
    make(present, &turn, &spot, || mkdirat(&spot.folder, name, NEW_FOLDER))
}

/// Creates a symbolic link. A link that leads out of the mount is refused: it could only mislead
/// other programs.
pub(super) fn make_link(
    present: &Present,
    from: &Opened,
    target: &str,
    path: &str,
) -> Result<(), ErrorCode> {
    let spot = place(present, from, path)?;
    let name = new_name(&spot)?;
    if leads_out(target, spot.below.components().count() - 1) {
        return Err(present.refuse_link(&spot.below));
    }
    let turn = present.turn();
    make(present, &turn, &spot, || symlinkat(target, &spot.folder, name))
}

/// Whether a link at this depth in the mount leads above its root.
fn leads_out(target: &str, depth: usize) -> bool {
    let mut left = Some(depth);
    for step in target.split('/') {
        left = match (step, left) {
            ("..", Some(depth)) => depth.checked_sub(1),
            ("" | ".", left) => left,
            (_, left) => left.map(|depth| depth + 1),
        };
    }
    target.starts_with('/') || left.is_none()
}

/// Adds a hard link to a file.
pub(super) fn add_name(
    present: &Present,
    from: (&Opened, &str),
    to: (&Opened, &str),
) -> Result<(), ErrorCode> {
    same_mount(from.0, to.0)?;
    let old = place(present, from.0, from.1)?;
    let new = place(present, to.0, to.1)?;
    let (old_name, new_name) = (name(&old)?, new_name(&new)?);
    let turn = present.turn();
    let linked = stat_of(&old)?;
    if old.is_folder && kind(&linked) != FileType::Directory {
        return Err(ErrorCode::NotDirectory);
    }
    present.may_use(&old.below, has_more_names(&linked), FsAccess::ReadWrite)?;
    let flags = AtFlags::empty();
    make(present, &turn, &new, || linkat(&old.folder, old_name, &new.folder, new_name, flags))
}

/// Makes sure that both folders belong to one mount, because what is denied or counted in one may
/// not be in the other. Programs copy instead, which is checked like any other read and write.
fn same_mount(one: &Opened, other: &Opened) -> Result<(), ErrorCode> {
    match Arc::ptr_eq(&one.mount, &other.mount) {
        true => Ok(()),
        false => Err(ErrorCode::CrossDevice),
    }
}

pub(super) fn rename(
    present: &Present,
    from: (&Opened, &str),
    to: (&Opened, &str),
) -> Result<(), ErrorCode> {
    same_mount(from.0, to.0)?;
    let old = place(present, from.0, from.1)?;
    let new = place(present, to.0, to.1)?;
    let (old_name, new_name) = (name(&old)?, name(&new)?);
    let turn = present.turn();
    let moved = stat_of(&old)?;
    let is_folder = kind(&moved) == FileType::Directory;
    if is_folder {
        present.may_move_folder(&old.below, &new.below)?;
    } else if old.is_folder || new.is_folder {
        return Err(ErrorCode::NotDirectory);
    }
    let replaced = stat_of(&new).ok().filter(|replaced| file_key(replaced) != file_key(&moved));
    renameat(&old.folder, old_name, &new.folder, new_name).map_err(code)?;
    if let Some(replaced) = replaced {
        refund(present, &turn, &replaced);
    }
    present.changed(&old.below);
    present.changed(&new.below);
    Ok(())
}

pub(super) fn remove_file(present: &Present, from: &Opened, path: &str) -> Result<(), ErrorCode> {
    let spot = place(present, from, path)?;
    let name = spot.name.as_deref().ok_or(ErrorCode::IsDirectory)?;
    let turn = present.turn();
    let stat = stat_of(&spot)?;
    match (kind(&stat), spot.is_folder) {
        (FileType::Directory, _) => return Err(ErrorCode::IsDirectory),
        (_, true) => return Err(ErrorCode::NotDirectory),
        (_, false) => {}
    }
    unlinkat(&spot.folder, name, AtFlags::empty()).map_err(code)?;
    refund(present, &turn, &stat);
    present.changed(&spot.below);
    Ok(())
}

pub(super) fn remove_folder(present: &Present, from: &Opened, path: &str) -> Result<(), ErrorCode> {
    let spot = place(present, from, path)?;
    let name = name(&spot)?;
    let turn = present.turn();
    unlinkat(&spot.folder, name, AtFlags::REMOVEDIR).map_err(|error| match error {
        // The remaining entries may be ones that the guest does not see.
        Errno::EXIST => ErrorCode::NotEmpty,
        error => code(error),
    })?;
    present.shrink(&turn, ENTRY_BYTES);
    present.changed(&spot.below);
    Ok(())
}

/// Refunds the bytes of a removed entry.
fn refund(present: &Present, turn: &Turn<'_>, gone: &Stat) {
    if gone.st_nlink > 1 && kind(gone) == FileType::RegularFile {
        present.shrink(turn, ENTRY_BYTES);
    } else {
        present.mount.account().refund_removed(turn, file_key(gone), entry_cost(gone));
    }
}

pub(super) fn set_times(
    present: &Present,
    from: &Opened,
    path: &str,
    last_link: LastLink,
    times: &Timestamps,
) -> Result<(), ErrorCode> {
    let spot = resolve(present, from, path, last_link, FsAccess::ReadWrite)?;
    present.may_change(&spot.below)?;
    present.may_use(&spot.below, has_more_names(&stat_of(&spot)?), FsAccess::ReadWrite)?;
    let set = match &spot.name {
        Some(name) => utimensat(&spot.folder, name, times, AtFlags::SYMLINK_NOFOLLOW),
        None => futimens(&spot.folder, times),
    };
    set.map_err(code)?;
    present.changed(&spot.below);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_told_from_those_that_stay() {
        let rows = [
            ("a", 0, false),
            ("a/../b", 0, false),
            ("../a", 1, false),
            ("../../a", 2, false),
            (".", 0, false),
            ("", 0, false),
            ("/a", 5, true),
            ("..", 0, true),
            ("../a", 0, true),
            ("../../a", 1, true),
            ("a/../../b", 0, true),
            ("../../mount/a", 1, true),
        ];
        for (target, depth, want) in rows {
            assert_eq!(leads_out(target, depth), want, "{target:?} {depth}");
        }
    }
}
