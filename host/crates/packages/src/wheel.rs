//! A wheel: the parts of its file name, and its files.

use std::io::{Cursor, Read};

use sallyport_contract::services::{PackageFetchError, PackageFile};
use zip::{ZipArchive, result::ZipError};

use crate::project::normalize_version;

/// The extension of a wheel.
const ENDING: &str = ".whl";

/// Maximum length of a file name, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Maximum number of files in a wheel. Large pure Python projects have a few thousand.
const FILES_MAX: usize = 10_000;

/// Maximum total size of a wheel's files, in bytes. They are loaded into the memory of a guest.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// A parsed wheel file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WheelName {
    pub(crate) project: String,
    /// The normalized version.
    pub(crate) version: String,
    /// Whether it contains no machine code and supports Python 3.
    pub(crate) is_pure: bool,
}

impl WheelName {
    /// Parses a file name such as `tabulate-0.9.0-py3-none-any.whl`.
    pub(crate) fn parse(file_name: &str) -> Option<Self> {
        let stem = file_name.strip_suffix(ENDING).filter(|_| file_name.len() <= NAME_BYTES_MAX)?;
        let parts: Vec<&str> = stem.split('-').collect();
        // A build number may come between version and tags.
        let (project, version, [python, abi, platform]) = match parts.as_slice() {
            [project, version, python, abi, platform]
            | [project, version, _, python, abi, platform] => {
                (project, version, [python, abi, platform])
            }
            _ => return None,
        };
        let is_for_python_3 = python.split('.').any(|tag| tag.starts_with("py3"));
        let is_pure = is_for_python_3 && **abi == *"none" && **platform == *"any";
        let version = normalize_version(version);
        Some(Self { project: (*project).to_owned(), version, is_pure })
    }
}

/// Unpacks a wheel in memory.
///
/// # Errors
///
/// The file is not a wheel, is too large, or contains a path outside of it.
pub(crate) fn unpack_wheel(bytes: &[u8]) -> Result<Vec<PackageFile>, PackageFetchError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| zip_error(&error))?;
    if archive.len() > FILES_MAX {
        return Err(invalid_package(&format!(
            "it contains {} files; the limit is {FILES_MAX}",
            archive.len()
        )));
    }
    let (mut files, mut bytes_left) = (Vec::new(), UNPACKED_BYTES_MAX);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| zip_error(&error))?;
        if entry.is_dir() {
            continue;
        }
        let path = entry.name().map_err(|error| zip_error(&error))?.into_owned();
        if !is_plain_path(&path) {
            return Err(invalid_package("it contains a path outside of it"));
        }
        // Count the unpacked bytes, because the sizes in an archive are untrusted.
        let mut data = Vec::new();
        let read = entry.take(bytes_left + 1).read_to_end(&mut data);
        read.map_err(|_| invalid_package("it is damaged"))?;
        bytes_left = bytes_left.checked_sub(data.len() as u64).ok_or_else(|| {
            invalid_package(&format!(
                "it is larger than {} MiB when unpacked",
                UNPACKED_BYTES_MAX >> 20
            ))
        })?;
        files.push(PackageFile { path, data });
    }
    Ok(files)
}

/// Returns whether a path is relative and consists of plain names.
fn is_plain_path(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !path.contains(['\\', '\0', ':']) && path.split('/').all(plain)
}

fn zip_error(error: &ZipError) -> PackageFetchError {
    invalid_package(&error.to_string())
}

fn invalid_package(why: &str) -> PackageFetchError {
    PackageFetchError::Unavailable(format!("the package cannot be used: {why}"))
}
