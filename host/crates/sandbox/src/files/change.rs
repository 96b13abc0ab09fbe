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
    symlink::{check_moved_symlinks, check_new_symlink},
};

/// The mode of a new folder, which the process's umask narrows.
const NEW_FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// Resolves a path that may be changed. A link at the end is the target itself.
fn resolve_for_change(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<ResolvedGuestPath, ErrorCode> {
    let resolved =
        resolve_path(granted_mount, from, path, FinalSymlinkMode::NoFollow, FsAccess::ReadWrite)?;
    granted_mount.check_change(&resolved.relative_path)?;
    Ok(resolved)
}

/// The name of the entry in its folder. A path that names the folder itself has none and is
/// refused.
fn entry_name(resolved: &ResolvedGuestPath) -> Result<&OsStr, ErrorCode> {
    resolved.name.as_deref().ok_or(ErrorCode::Invalid)
}

/// The name for an entry that is not a folder. A path that ends in a slash names a folder, so no
/// file or link is created there.
fn new_entry_name(resolved: &ResolvedGuestPath) -> Result<&OsStr, ErrorCode> {
    let name = entry_name(resolved)?;
    if !resolved.is_folder {
        return Ok(name);
    }
    Err(match stat_resolved_path(resolved) {
        Ok(found) if file_type_of(&found) == FileType::Directory => ErrorCode::Exist,
        Ok(_) => ErrorCode::NotDirectory,
        Err(error) => error,
    })
}

/// Keeps what is at a path for undo. The folder's turn is held.
fn keep_before_change(granted_mount: &GrantedMount, resolved: &ResolvedGuestPath) {
    if let Some(name) = &resolved.name {
        granted_mount.keep_before_change(&resolved.folder, name, &resolved.relative_path, false);
    }
}

/// Creates one entry, charges it and records it.
fn create_entry(
    granted_mount: &GrantedMount,
    write_guard: &FolderWriteGuard<'_>,
    resolved: &ResolvedGuestPath,
    act: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), ErrorCode> {
    granted_mount.charge_growth(write_guard, ENTRY_BYTES)?;
    keep_before_change(granted_mount, resolved);
    act().map_err(|error| {
        granted_mount.refund_bytes(write_guard, ENTRY_BYTES);
        to_error_code(error)
    })?;
    granted_mount.record_change(&resolved.relative_path);
    Ok(())
}

pub(super) fn create_folder(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<(), ErrorCode> {
    let resolved = resolve_for_change(granted_mount, from, path)?;
    let name = resolved.name.as_deref().ok_or(ErrorCode::Exist)?;
    let write_guard = granted_mount.lock_for_write();
    create_entry(granted_mount, &write_guard, &resolved, || {
        mkdirat(&resolved.folder, name, NEW_FOLDER_MODE)
    })
}

/// Creates a symbolic link. A link that leads out of the mount is refused: it could only mislead
/// other programs.
pub(super) fn create_symlink(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    target: &str,
    path: &str,
) -> Result<(), ErrorCode> {
    let resolved = resolve_for_change(granted_mount, from, path)?;
    let name = new_entry_name(&resolved)?;
    let write_guard = granted_mount.lock_for_write();
    check_new_symlink(granted_mount, &resolved, target)?;
    create_entry(granted_mount, &write_guard, &resolved, || {
        symlinkat(target, &resolved.folder, name)
    })
}

/// Adds a hard link to a file.
pub(super) fn create_hard_link(
    granted_mount: &GrantedMount,
    from: (&FileHandle, &str),
    to: (&FileHandle, &str),
) -> Result<(), ErrorCode> {
    check_same_mount(from.0, to.0)?;
    let old = resolve_for_change(granted_mount, from.0, from.1)?;
    let new = resolve_for_change(granted_mount, to.0, to.1)?;
    let (old_name, new_name) = (entry_name(&old)?, new_entry_name(&new)?);
    let write_guard = granted_mount.lock_for_write();
    let linked = stat_resolved_path(&old)?;
    if old.is_folder && file_type_of(&linked) != FileType::Directory {
        return Err(ErrorCode::NotDirectory);
    }
    granted_mount.check_hard_links(
        &old.relative_path,
        has_hard_links(&linked),
        FsAccess::ReadWrite,
    )?;
    check_moved_symlinks(granted_mount, &linked, (&old, old_name), &new)?;
    let flags = AtFlags::empty();
    create_entry(granted_mount, &write_guard, &new, || {
        linkat(&old.folder, old_name, &new.folder, new_name, flags)
    })
}

/// Makes sure that both folders belong to one mount, because what is denied or counted in one may
/// not be in the other. Programs copy instead, which is checked like any other read and write.
pub(super) fn check_same_mount(one: &FileHandle, other: &FileHandle) -> Result<(), ErrorCode> {
    match Arc::ptr_eq(&one.mount, &other.mount) {
        true => Ok(()),
        false => Err(ErrorCode::CrossDevice),
    }
}

pub(super) fn rename_entry(
    granted_mount: &GrantedMount,
    from: (&FileHandle, &str),
    to: (&FileHandle, &str),
) -> Result<(), ErrorCode> {
    check_same_mount(from.0, to.0)?;
    let old = resolve_for_change(granted_mount, from.0, from.1)?;
    let new = resolve_for_change(granted_mount, to.0, to.1)?;
    let (old_name, new_name) = (entry_name(&old)?, entry_name(&new)?);
    let write_guard = granted_mount.lock_for_write();
    let moved = stat_resolved_path(&old)?;
    let is_folder = file_type_of(&moved) == FileType::Directory;
    if is_folder {
        granted_mount.check_folder_move(&old.relative_path, &new.relative_path)?;
    } else if old.is_folder || new.is_folder {
        return Err(ErrorCode::NotDirectory);
    }
    check_moved_symlinks(granted_mount, &moved, (&old, old_name), &new)?;
    let replaced = stat_resolved_path(&new)
        .ok()
        .filter(|replaced| file_identity(replaced) != file_identity(&moved));
    granted_mount.keep_before_change(&old.folder, old_name, &old.relative_path, is_folder);
    if !is_folder {
        keep_before_change(granted_mount, &new);
    }
    renameat(&old.folder, old_name, &new.folder, new_name).map_err(to_error_code)?;
    if let Some(replaced) = replaced {
        refund_removed_entry(granted_mount, &write_guard, &replaced);
    }
    granted_mount.record_change(&old.relative_path);
    granted_mount.record_change(&new.relative_path);
    Ok(())
}

pub(super) fn remove_file(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<(), ErrorCode> {
    let resolved = resolve_for_change(granted_mount, from, path)?;
    let name = resolved.name.as_deref().ok_or(ErrorCode::IsDirectory)?;
    let write_guard = granted_mount.lock_for_write();
    let stat = stat_resolved_path(&resolved)?;
    match (file_type_of(&stat), resolved.is_folder) {
        (FileType::Directory, _) => return Err(ErrorCode::IsDirectory),
        (_, true) => return Err(ErrorCode::NotDirectory),
        (_, false) => {}
    }
    keep_before_change(granted_mount, &resolved);
    unlinkat(&resolved.folder, name, AtFlags::empty()).map_err(to_error_code)?;
    refund_removed_entry(granted_mount, &write_guard, &stat);
    granted_mount.record_change(&resolved.relative_path);
    Ok(())
}

pub(super) fn remove_folder(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<(), ErrorCode> {
    let resolved = resolve_for_change(granted_mount, from, path)?;
    let name = entry_name(&resolved)?;
    let write_guard = granted_mount.lock_for_write();
    keep_before_change(granted_mount, &resolved);
    unlinkat(&resolved.folder, name, AtFlags::REMOVEDIR).map_err(|error| match error {
        // The remaining entries may be ones that the guest does not see.
        Errno::EXIST => ErrorCode::NotEmpty,
        error => to_error_code(error),
    })?;
    granted_mount.refund_bytes(&write_guard, ENTRY_BYTES);
    granted_mount.record_change(&resolved.relative_path);
    Ok(())
}

/// Refunds the bytes of a removed entry.
fn refund_removed_entry(
    granted_mount: &GrantedMount,
    write_guard: &FolderWriteGuard<'_>,
    removed: &Stat,
) {
    if removed.st_nlink > 1 && file_type_of(removed) == FileType::RegularFile {
        granted_mount.refund_bytes(write_guard, ENTRY_BYTES);
    } else {
        granted_mount.mount.quota_account().refund_removed_file(
            write_guard,
            file_identity(removed),
            entry_cost(removed),
        );
    }
}

pub(super) fn set_times(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
    final_symlink: FinalSymlinkMode,
    times: &Timestamps,
) -> Result<(), ErrorCode> {
    let resolved = resolve_path(granted_mount, from, path, final_symlink, FsAccess::ReadWrite)?;
    granted_mount.check_change(&resolved.relative_path)?;
    granted_mount.check_hard_links(
        &resolved.relative_path,
        has_hard_links(&stat_resolved_path(&resolved)?),
        FsAccess::ReadWrite,
    )?;
    let set = match &resolved.name {
        Some(name) => utimensat(&resolved.folder, name, times, AtFlags::SYMLINK_NOFOLLOW),
        None => futimens(&resolved.folder, times),
    };
    set.map_err(to_error_code)?;
    granted_mount.record_change(&resolved.relative_path);
    Ok(())
}
