//! Wheels that were fetched before, in a private folder of the cache, one for each index: what one of
//! them gave out is not what another one has.
//!
//! A file is named after project, version and the digest that it had to have, and its bytes are
//! hashed again before they are used: what was changed or cut short is fetched anew.

use std::{fs, io, os::unix::fs::DirBuilderExt, path::Path};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::{listing::Digest, project::Project};

/// Only the user may put files there.
const FOLDER_MODE: u32 = 0o700;

/// Largest file that is read; a wheel has less.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Returns the SHA-256 of bytes.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Returns the name of the folder for what an index gave out.
pub(crate) fn shelf(address: &str) -> String {
    HEXLOWER.encode(&digest(address.as_bytes()))
}

/// Looks for a wheel that was kept, whatever the index says of it now: a pinned version does not
/// change.
pub(crate) fn find(folder: &Path, project: &Project) -> Option<Vec<u8>> {
    let prefix = prefix(project);
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let hex = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(".whl"));
        let Some(hex) = hex else { continue };
        let bytes = read(&entry.path()).ok()?;
        if HEXLOWER.encode(&digest(&bytes)) == hex {
            return Some(bytes);
        }
    }
    None
}

/// Keeps a wheel. It takes its name only when it is whole, so that no torn file is ever found.
///
/// # Errors
///
/// The folder cannot be written to.
pub(crate) fn keep(folder: &Path, project: &Project, bytes: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    let fresh = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(fresh.path(), bytes)?;
    let name = format!("{}{}.whl", prefix(project), HEXLOWER.encode(&digest(bytes)));
    fresh.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

/// Neither half can hold a `=` or a slash.
fn prefix(project: &Project) -> String {
    format!("{}={}=", project.name, project.version)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    sallyport_untrusted_file::read(path, FILE_BYTES_MAX)
}
