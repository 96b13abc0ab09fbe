//! Looking at a path without opening it.

use rustix::fs::{AtFlags, FileType, Stat, fstat, readlinkat, statat};
use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    convert::{file_type_of, to_error_code},
    file_handle::FileHandle,
    mount::GrantedMount,
    resolve::{FinalSymlinkMode, ResolvedGuestPath, resolve_path},
};

/// Returns the metadata of a path.
pub(super) fn stat_path(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
    final_symlink: FinalSymlinkMode,
) -> Result<Stat, ErrorCode> {
    let resolved = resolve_path(granted_mount, from, path, final_symlink, FsAccess::Read)?;
    let stat = stat_resolved_path(&resolved)?;
    match resolved.is_folder && file_type_of(&stat) != FileType::Directory {
        true => Err(ErrorCode::NotDirectory),
        false => Ok(stat),
    }
}

/// Returns the metadata of a resolved path. A link here is not followed: `resolve` has already
/// followed the links that it should.
pub(super) fn stat_resolved_path(resolved: &ResolvedGuestPath) -> Result<Stat, ErrorCode> {
    let found = match &resolved.name {
        Some(name) => statat(&resolved.folder, name, AtFlags::SYMLINK_NOFOLLOW),
        None => fstat(&resolved.folder),
    };
    found.map_err(to_error_code)
}

/// Returns the target of a link. An absolute target is refused: it would reveal a path of the host.
pub(super) fn read_link(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<String, ErrorCode> {
    let resolved =
        resolve_path(granted_mount, from, path, FinalSymlinkMode::NoFollow, FsAccess::Read)?;
    let name = resolved.name.ok_or(ErrorCode::Invalid)?;
    let target = readlinkat(&resolved.folder, name, Vec::new()).map_err(to_error_code)?;
    match target.into_string() {
        Ok(target) if target.starts_with('/') => {
            Err(granted_mount.refuse_link(&resolved.relative_path))
        }
        Ok(target) => Ok(target),
        Err(_) => Err(ErrorCode::IllegalByteSequence),
    }
}
