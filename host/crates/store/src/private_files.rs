//! A folder that only this user can access, and the files in it.
//!
//! No other user can put a file or a link into such a folder, so a file that was checked is still
//! the same file when it is used.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::{Access, OFlags};

use crate::error::StoreError;

/// The mode of the folder.
const FOLDER_MODE: u32 = 0o700;

/// The mode of every file in it.
const FILE_MODE: u32 = 0o600;

/// The extension of a file that is about to replace another.
const REPLACEMENT_EXTENSION: &str = "new";

/// Creates the folder if it is missing, checks that it is private, and returns its real path.
///
/// # Errors
///
/// The folder cannot be created, is a link or not a folder, belongs to another user, or is
/// accessible to others.
pub(crate) fn ensure_private_folder(path: &Path) -> Result<PathBuf, StoreError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
    made.map_err(|error| io_error("create", path, error))?;
    // Otherwise a power failure could lose the new folder's name, and with it the whole store.
    for parent in missing.iter().filter_map(|made| made.parent()) {
        sync_folder(parent).map_err(|error| io_error("create", path, error))?;
    }
    let info = fs::symlink_metadata(path).map_err(|error| io_error("open", path, error))?;
    check_folder(path, &info)?;
    fs::canonicalize(path).map_err(|error| io_error("open", path, error))
}

/// Checks whether [`ensure_private_folder`] can succeed and files can be created in the folder.
/// Creates nothing.
///
/// # Errors
///
/// As [`ensure_private_folder`], or the folder cannot be written to.
pub(crate) fn check_private_folder(path: &Path) -> Result<(), StoreError> {
    let existing = path.ancestors().find(|above| fs::symlink_metadata(above).is_ok());
    // A relative path may have no folder that exists.
    let existing = existing.unwrap_or(Path::new("."));
    let verb = if existing == path { "write" } else { "create" };
    let failed = |error| io_error(verb, path, error);
    if existing == path {
        check_folder(path, &fs::symlink_metadata(path).map_err(failed)?)?;
    } else if !fs::metadata(existing).map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let access = rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK);
    access.map_err(|error| failed(error.into()))
}

fn check_folder(path: &Path, info: &Metadata) -> Result<(), StoreError> {
    if !info.is_dir() {
        let why = if info.is_symlink() { "it is a link" } else { "it is not a folder" };
        return Err(not_private_error(path, why, FOLDER_MODE));
    }
    check_owner(path, info, FOLDER_MODE)
}

/// Waits until the names in a folder are on the disk. An empty path means the current folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Checks that a file is private, if it exists.
///
/// # Errors
///
/// It is a link or not a plain file, belongs to another user, or is accessible to others.
pub(crate) fn check_private_file(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(info) => check_file(path, &info),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error("open", path, error)),
    }
}

/// Creates an empty private file, or checks the existing one.
///
/// An existing file is not opened, because closing it would release the locks that this process has
/// on it through SQLite. For the same reason only one thread at a time may create files.
///
/// # Errors
///
/// The file cannot be created, or is not private.
pub(crate) fn ensure_private_file(path: &Path) -> Result<(), StoreError> {
    static CREATION_LOCK: Mutex<()> = Mutex::new(());
    let _one_at_a_time = CREATION_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    match private_open_options().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_private_file(path),
        Err(error) => Err(io_error("create", path, error)),
    }
}

/// Reads a private file, at most `bytes_max` bytes and one more, so that the caller can detect a
/// longer file. `None` if the file does not exist.
///
/// # Errors
///
/// The file cannot be read, or is not private.
pub(crate) fn read_private_file(
    path: &Path,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let unreadable = |error| io_error("read", path, error);
    let file = match private_open_options().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    check_file(path, &file.metadata().map_err(unreadable)?)?;
    let mut bytes = Vec::with_capacity(bytes_max + 1);
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some(bytes))
}

/// Overwrites a file of a fixed size of less than one sector, in a single write that needs no new
/// disk space, so a failure leaves either the old bytes or the new ones.
///
/// Does not wait for the disk. Only one process at a time may write the file, and none may read it
/// meanwhile.
///
/// A file that is missing or has another size is written by [`replace_file`] instead.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn overwrite_fixed_size(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let present = private_open_options().write(true).open(path).and_then(|file| {
        let fits = file.metadata()?.len() == bytes.len() as u64;
        Ok(fits.then_some(file))
    });
    match present {
        Ok(Some(file)) => {
            file.write_all_at(bytes, 0).map_err(|error| io_error("write", path, error))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("write", path, error))
        }
        Ok(None) | Err(_) => replace_file(path, bytes),
    }
}

/// Replaces a file atomically, and returns once it is on the disk. Only one process at a time may
/// do this to a file.
///
/// # Errors
///
/// The file cannot be written. The old file is still there, unless only the last step failed, the
/// sync of the folder.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let replacement = path.with_added_extension(REPLACEMENT_EXTENSION);
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = private_open_options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&replacement)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&replacement, path))
        .and_then(|()| sync_folder(folder));
    written.map_err(|error| io_error("write", path, error))
}

/// Creates files private, does not follow links, and does not block on pipes.
fn private_open_options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE).custom_flags(flags.bits().cast_signed());
    options
}

fn check_file(path: &Path, info: &Metadata) -> Result<(), StoreError> {
    if !info.is_file() {
        return Err(not_private_error(path, "it is not a plain file", FILE_MODE));
    }
    check_owner(path, info, FILE_MODE)
}

fn check_owner(path: &Path, info: &Metadata, mode: u32) -> Result<(), StoreError> {
    if info.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_private_error(path, "it belongs to another user", mode));
    }
    if info.permissions().mode() & 0o777 & !mode != 0 {
        return Err(not_private_error(path, "others can use it", mode));
    }
    Ok(())
}

fn not_private_error(path: &Path, why: &'static str, mode: u32) -> StoreError {
    StoreError::NotPrivate { path: path.to_owned(), why, mode }
}

fn io_error(verb: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::File { verb, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What the check says, what happens, and that the check has made nothing.
    #[test]
    fn a_folder_that_cannot_be_made_is_told_before() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink(at("nowhere/x"), at("link-to-nothing")).unwrap();
        symlink(parent.path(), at("link")).unwrap();
        for (name, mode) in [("open", 0o755), ("closed", 0o500)] {
            fs::create_dir(at(name)).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        // The permissions of a folder do not stop root.
        let is_root = rustix::process::geteuid().is_root();
        let rows = [
            ("new", true),
            ("new/in/new", true),
            ("link/beside", true),
            ("file", false),
            ("file/new", false),
            ("link", false),
            ("link-to-nothing", false),
            ("link-to-nothing/new", false),
            ("open", false),
            ("closed/new", is_root),
        ];
        for (name, is_possible) in rows {
            let path = at(name);
            let existed = path.exists();
            let checked = check_private_folder(&path);
            assert_eq!(checked.is_ok(), is_possible, "{name}: {checked:?}");
            assert_eq!(path.exists(), existed, "{name}");
            assert_eq!(ensure_private_folder(&path).is_ok(), is_possible, "{name}");
            assert_eq!(check_private_folder(&path).is_ok(), is_possible, "{name}");
        }
    }
}
