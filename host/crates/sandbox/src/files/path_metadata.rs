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
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
    last_link: FinalSymlinkMode,
) -> Result<Stat, ErrorCode> {
    let spot = resolve_path(present, from, path, last_link, FsAccess::Read)?;
    let stat = stat_resolved_path(&spot)?;
    match spot.is_folder && file_type_of(&stat) != FileType::Directory {
        true => Err(ErrorCode::NotDirectory),
        false => Ok(stat),
    }
}

/// Returns the metadata of a resolved path. A link here is not followed: `resolve` has already
/// followed the links that it should.
pub(super) fn stat_resolved_path(spot: &ResolvedGuestPath) -> Result<Stat, ErrorCode> {
    let found = match &spot.name {
        Some(name) => statat(&spot.folder, name, AtFlags::SYMLINK_NOFOLLOW),
        None => fstat(&spot.folder),
    };
    found.map_err(to_error_code)
}

/// Returns the target of a link. An absolute target is refused: it would reveal a path of the host.
pub(super) fn read_link(
    present: &GrantedMount,
    from: &FileHandle,
    path: &str,
) -> Result<String, ErrorCode> {
    let spot = resolve_path(present, from, path, FinalSymlinkMode::NoFollow, FsAccess::Read)?;
    let name = spot.name.ok_or(ErrorCode::Invalid)?;
    let target = readlinkat(&spot.folder, name, Vec::new()).map_err(to_error_code)?;
    match target.into_string() {
        Ok(target) if target.starts_with('/') => Err(present.refuse_link(&spot.relative_path)),
        Ok(target) => Ok(target),
        Err(_) => Err(ErrorCode::IllegalByteSequence),
    }
}
