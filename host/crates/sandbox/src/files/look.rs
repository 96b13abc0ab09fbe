//! Looking at a path without opening it.

use rustix::fs::{AtFlags, FileType, Stat, fstat, readlinkat, statat};
use sallyport_policy::Access;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    convert::{code, kind},
    mount::Present,
    opened::Opened,
    resolve::{LastLink, Spot, resolve},
};

/// What is at a path.
pub(super) fn stat(
    present: &Present,
    from: &Opened,
    path: &str,
    last_link: LastLink,
) -> Result<Stat, ErrorCode> {
    let spot = resolve(present, from, path, last_link, Access::Read)?;
    let stat = stat_of(&spot)?;
    match spot.is_folder && kind(&stat) != FileType::Directory {
        true => Err(ErrorCode::NotDirectory),
        false => Ok(stat),
    }
}

/// What is at a place. A link is looked at itself: the way to the place has followed those that it
/// should.
pub(super) fn stat_of(spot: &Spot) -> Result<Stat, ErrorCode> {
    let found = match &spot.name {
        Some(name) => statat(&spot.folder, name, AtFlags::SYMLINK_NOFOLLOW),
        None => fstat(&spot.folder),
    };
    found.map_err(code)
}

/// What a link says. One that leads to an absolute path would tell where things are on the host.
pub(super) fn read_link(present: &Present, from: &Opened, path: &str) -> Result<String, ErrorCode> {
    let spot = resolve(present, from, path, LastLink::Meant, Access::Read)?;
    let name = spot.name.ok_or(ErrorCode::Invalid)?;
    let target = readlinkat(&spot.folder, name, Vec::new()).map_err(code)?;
    match target.into_string() {
        Ok(target) if target.starts_with('/') => Err(present.refuse_link(&spot.below)),
        Ok(target) => Ok(target),
        Err(_) => Err(ErrorCode::IllegalByteSequence),
    }
}
