//! A wheel: its file name, which says what it is for, and the files in it.

use std::io::{Cursor, Read};

use sallyport_contract::services::{PackageError, PackageFile};
use zip::{ZipArchive, result::ZipError};

use crate::project::normal_version;

/// Ending of a wheel's file name.
const ENDING: &str = ".whl";

/// Longest file name that is looked at.
const NAME_BYTES_MAX: usize = 256;

/// Files of one wheel; large projects in pure Python have some thousands.
const FILES_MAX: usize = 10_000;

/// Bytes of all files of one wheel. It goes into the memory of a guest, which holds less.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// What a wheel's file name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WheelName {
    pub(crate) project: String,
    /// In its normal form.
    pub(crate) version: String,
    /// It holds no machine code and is for Python 3.
    pub(crate) is_pure: bool,
}

impl WheelName {
    /// Takes `tabulate-0.9.0-py3-none-any.whl` apart.
    pub(crate) fn parse(file_name: &str) -> Option<Self> {
        let stem = file_name.strip_suffix(ENDING).filter(|_| file_name.len() <= NAME_BYTES_MAX)?;
        let parts: Vec<&str> = stem.split('-').collect();
        // Between version and tags there may be the number of a build.
        let (project, version, [python, abi, platform]) = match parts.as_slice() {
            [project, version, python, abi, platform]
            | [project, version, _, python, abi, platform] => {
                (project, version, [python, abi, platform])
            }
            _ => return None,
        };
        let is_for_python_3 = python.split('.').any(|tag| tag.starts_with("py3"));
        let is_pure = is_for_python_3 && **abi == *"none" && **platform == *"any";
        let version = normal_version(version);
        Some(Self { project: (*project).to_owned(), version, is_pure })
    }
}

/// Unpacks a wheel in memory.
///
/// # Errors
///
/// It is no wheel, too large, or its paths lead somewhere else.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<PackageFile>, PackageError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    if archive.len() > FILES_MAX {
        return Err(bad(&format!("it holds {} files, at most {FILES_MAX}", archive.len())));
    }
    let (mut files, mut bytes_left) = (Vec::new(), UNPACKED_BYTES_MAX);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| broken(&error))?;
        if entry.is_dir() {
            continue;
        }
        let path = entry.name().map_err(|error| broken(&error))?.into_owned();
        if !is_plain(&path) {
            return Err(bad("it holds a path that leads out of it"));
        }
        // What an archive says about sizes is its own claim; what comes out of it is counted.
        let mut data = Vec::new();
        let read = entry.take(bytes_left + 1).read_to_end(&mut data);
        read.map_err(|_| bad("it is damaged"))?;
        bytes_left = bytes_left.checked_sub(data.len() as u64).ok_or_else(|| {
            bad(&format!("unpacked it has more than {} MiB", UNPACKED_BYTES_MAX >> 20))
        })?;
        files.push(PackageFile { path, data });
    }
    Ok(files)
}

/// A relative path of plain names.
fn is_plain(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !path.contains(['\\', '\0', ':']) && path.split('/').all(plain)
}

fn broken(error: &ZipError) -> PackageError {
    bad(&error.to_string())
}

fn bad(why: &str) -> PackageError {
    PackageError::Unavailable(format!("the package cannot be used: {why}"))
}
