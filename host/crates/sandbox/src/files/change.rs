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
    convert::{file_identity, file_type_of, has_hard_links, to_error_code},
    file_handle::FileHandle,
    folder_usage::{ENTRY_BYTES, FolderWriteGuard},
    measure::entry_cost,
    mount::GrantedMount,
    path_metadata::stat_resolved_path,
    resolve::{FinalSymlinkMode, ResolvedGuestPath, resolve_path},
};

/// The mode of a new folder, which the process's umask narrows.
const NEW_FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// Resolves a path that may be changed. A link at the end is the target itself.
fn resolve_for_change(
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<ResolvedGuestPath, ErrorCode> {
    let spot = resolve_path(present, from, path, FinalSymlinkMode::NoFollow, FsAccess::ReadWrite)?;
    present.check_change(&spot.relative_path)?;
    Ok(spot)
}

/// The name of the entry in its folder. A path that names the folder itself has none and is
/// refused.
fn entry_name(spot: &ResolvedGuestPath) -> Result<&OsStr, ErrorCode> {
    spot.name.as_deref().ok_or(ErrorCode::Invalid)
}

/// The name for an entry that is not a folder. A path that ends in a slash names a folder, so no
/// file or link is created there.
fn new_entry_name(spot: &ResolvedGuestPath) -> Result<&OsStr, ErrorCode> {
    let name = entry_name(spot)?;
    if !spot.is_folder {
        return Ok(name);
    }
    Err(match stat_resolved_path(spot) {
        Ok(found) if file_type_of(&found) == FileType::Directory => ErrorCode::Exist,
        Ok(_) => ErrorCode::NotDirectory,
        Err(error) => error,
    })
}

/// Creates one entry, charges it and records it.
fn create_entry(
    present: &GrantedMount,
    turn: &FolderWriteGuard<'_>,
    spot: &ResolvedGuestPath,
    act: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), ErrorCode> {
    present.charge_growth(turn, ENTRY_BYTES)?;
    act().map_err(|error| {
        present.refund_bytes(turn, ENTRY_BYTES);
        to_error_code(error)
    })?;
    present.record_change(&spot.relative_path);
    Ok(())
}

pub(super) fn create_folder(
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<(), ErrorCode> {
    let spot = resolve_for_change(present, from, path)?;
    let name = spot.name.as_deref().ok_or(ErrorCode::Exist)?;
    let turn = present.lock_for_write();
    create_entry(present, &turn, &spot, || mkdirat(&spot.folder, name, NEW_FOLDER_MODE))
}

/// Creates a symbolic link. A link that leads out of the mount is refused: it could only mislead
/// other programs.
pub(super) fn create_symlink(
    present: &GrantedMount,
    from: &FileHandle,
    target: &str,
    path: &str,
) -> Result<(), ErrorCode> {
    let spot = resolve_for_change(present, from, path)?;
    let name = new_entry_name(&spot)?;
    if is_outside_mount(target, spot.relative_path.components().count() - 1) {
        return Err(present.refuse_link(&spot.relative_path));
    }
    let turn = present.lock_for_write();
    create_entry(present, &turn, &spot, || symlinkat(target, &spot.folder, name))
}

/// Whether a link at this depth in the mount leads above its root.
fn is_outside_mount(target: &str, depth: usize) -> bool {
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
pub(super) fn create_hard_link(
    present: &GrantedMount,
    from: (&FileHandle, &str),
    to: (&FileHandle, &str),
) -> Result<(), ErrorCode> {
    check_same_mount(from.0, to.0)?;
    let old = resolve_for_change(present, from.0, from.1)?;
    let new = resolve_for_change(present, to.0, to.1)?;
    let (old_name, new_name) = (entry_name(&old)?, new_entry_name(&new)?);
    let turn = present.lock_for_write();
    let linked = stat_resolved_path(&old)?;
    if old.is_folder && file_type_of(&linked) != FileType::Directory {
        return Err(ErrorCode::NotDirectory);
    }
    present.check_hard_links(&old.relative_path, has_hard_links(&linked), FsAccess::ReadWrite)?;
    let flags = AtFlags::empty();
    create_entry(present, &turn, &new, || {
        linkat(&old.folder, old_name, &new.folder, new_name, flags)
    })
}

/// Makes sure that both folders belong to one mount, because what is denied or counted in one may
/// not be in the other. Programs copy instead, which is checked like any other read and write.
fn check_same_mount(one: &FileHandle, other: &FileHandle) -> Result<(), ErrorCode> {
    match Arc::ptr_eq(&one.mount, &other.mount) {
        true => Ok(()),
        false => Err(ErrorCode::CrossDevice),
    }
}

pub(super) fn rename_entry(
    present: &GrantedMount,
    from: (&FileHandle, &str),
    to: (&FileHandle, &str),
) -> Result<(), ErrorCode> {
    check_same_mount(from.0, to.0)?;
    let old = resolve_for_change(present, from.0, from.1)?;
    let new = resolve_for_change(present, to.0, to.1)?;
    let (old_name, new_name) = (entry_name(&old)?, entry_name(&new)?);
    let turn = present.lock_for_write();
    let moved = stat_resolved_path(&old)?;
    let is_folder = file_type_of(&moved) == FileType::Directory;
    if is_folder {
        present.check_folder_move(&old.relative_path, &new.relative_path)?;
    } else if old.is_folder || new.is_folder {
        return Err(ErrorCode::NotDirectory);
    }
    let replaced = stat_resolved_path(&new)
        .ok()
        .filter(|replaced| file_identity(replaced) != file_identity(&moved));
    renameat(&old.folder, old_name, &new.folder, new_name).map_err(to_error_code)?;
    if let Some(replaced) = replaced {
        refund_removed_entry(present, &turn, &replaced);
    }
    present.record_change(&old.relative_path);
    present.record_change(&new.relative_path);
    Ok(())
}

pub(super) fn remove_file(
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<(), ErrorCode> {
    let spot = resolve_for_change(present, from, path)?;
    let name = spot.name.as_deref().ok_or(ErrorCode::IsDirectory)?;
    let turn = present.lock_for_write();
    let stat = stat_resolved_path(&spot)?;
    match (file_type_of(&stat), spot.is_folder) {
        (FileType::Directory, _) => return Err(ErrorCode::IsDirectory),
        (_, true) => return Err(ErrorCode::NotDirectory),
        (_, false) => {}
    }
    unlinkat(&spot.folder, name, AtFlags::empty()).map_err(to_error_code)?;
    refund_removed_entry(present, &turn, &stat);
    present.record_change(&spot.relative_path);
    Ok(())
}

pub(super) fn remove_folder(
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<(), ErrorCode> {
    let spot = resolve_for_change(present, from, path)?;
    let name = entry_name(&spot)?;
    let turn = present.lock_for_write();
    unlinkat(&spot.folder, name, AtFlags::REMOVEDIR).map_err(|error| match error {
        // The remaining entries may be ones that the guest does not see.
        Errno::EXIST => ErrorCode::NotEmpty,
        error => to_error_code(error),
    })?;
    present.refund_bytes(&turn, ENTRY_BYTES);
    present.record_change(&spot.relative_path);
    Ok(())
}

/// Refunds the bytes of a removed entry.
fn refund_removed_entry(present: &GrantedMount, turn: &FolderWriteGuard<'_>, gone: &Stat) {
    if gone.st_nlink > 1 && file_type_of(gone) == FileType::RegularFile {
        present.refund_bytes(turn, ENTRY_BYTES);
    } else {
        present.mount.quota_account().refund_removed_file(
            turn,
            file_identity(gone),
            entry_cost(gone),
        );
    }
}

pub(super) fn set_times(
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
    last_link: FinalSymlinkMode,
    times: &Timestamps,
) -> Result<(), ErrorCode> {
    let spot = resolve_path(present, from, path, last_link, FsAccess::ReadWrite)?;
    present.check_change(&spot.relative_path)?;
    present.check_hard_links(
        &spot.relative_path,
        has_hard_links(&stat_resolved_path(&spot)?),
        FsAccess::ReadWrite,
    )?;
    let set = match &spot.name {
        Some(name) => utimensat(&spot.folder, name, times, AtFlags::SYMLINK_NOFOLLOW),
        None => futimens(&spot.folder, times),
    };
    set.map_err(to_error_code)?;
    present.record_change(&spot.relative_path);
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
            assert_eq!(is_outside_mount(target, depth), want, "{target:?} {depth}");
        }
    }
}
