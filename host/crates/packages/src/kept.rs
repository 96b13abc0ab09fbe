//! The cache of downloaded wheels: a private folder for each index, since indexes may differ.
//!
//! A file name contains the project, the version and the expected digest. The bytes are hashed
//! again before use, so a damaged file is downloaded again.

use std::{fs, io, os::unix::fs::DirBuilderExt, path::Path};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::{listing::Digest, project::ProjectVersion};

/// Only the user can write to the folder.
const FOLDER_MODE: u32 = 0o700;

/// Maximum size of a cached file, in bytes. Wheels are smaller.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Returns the SHA-256 digest of bytes.
pub(crate) fn sha256_digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Returns the name of an index's cache folder.
pub(crate) fn cache_folder_name(address: &str) -> String {
    HEXLOWER.encode(&sha256_digest(address.as_bytes()))
}

/// Returns a cached wheel, regardless of the current index: a pinned version does not change.
pub(crate) fn find_cached_wheel(folder: &Path, project: &ProjectVersion) -> Option<Vec<u8>> {
    let prefix = file_name_prefix(project);
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let hex = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(".whl"));
        let Some(hex) = hex else { continue };
        // A file that cannot be read must not hide another one that can.
        let Ok(bytes) = read_wheel(&entry.path()) else { continue };
        if HEXLOWER.encode(&sha256_digest(&bytes)) == hex {
            return Some(bytes);
        }
    }
    None
}

/// Caches a wheel. The file is renamed into place once it is complete, so no partial file is ever
/// found.
///
/// # Errors
///
/// The folder cannot be written to.
pub(crate) fn cache_wheel(folder: &Path, project: &ProjectVersion, bytes: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    let fresh = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(fresh.path(), bytes)?;
    let name =
        format!("{}{}.whl", file_name_prefix(project), HEXLOWER.encode(&sha256_digest(bytes)));
    fresh.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

/// Returns the start of a file name. Neither name nor version can contain `=` or a slash.
fn file_name_prefix(project: &ProjectVersion) -> String {
    format!("{}={}=", project.name, project.version)
}

fn read_wheel(path: &Path) -> io::Result<Vec<u8>> {
    sallyport_untrusted_file::read_bytes(path, FILE_BYTES_MAX)
}
