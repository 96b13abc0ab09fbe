//! A folder that is this user's alone, and the files in it.
//!
//! Since nobody else can put a file or a link into such a folder, a file that was checked stays the
//! file that is used.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::OFlags;

use crate::error::StoreError;

/// Mode of the folder.
const FOLDER_MODE: u32 = 0o700;

/// Mode of every file in it.
const FILE_MODE: u32 = 0o600;

/// Ending of a file that is about to take the place of another.
const FRESH: &str = "new";

/// Makes the folder if it is missing, checks that it is private, and returns its real path.
///
/// # Errors
///
/// It cannot be made, is a link or no folder, belongs to somebody else, or is open to others.
pub(crate) fn folder(path: &Path) -> Result<PathBuf, StoreError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
    made.map_err(|error| failed("create", path, error))?;
    // Or all that is kept could be lost with the folder's own name when the power fails.
    for parent in missing.iter().filter_map(|made| made.parent()) {
        sync_folder(parent).map_err(|error| failed("create", path, error))?;
    }
    let info = fs::symlink_metadata(path).map_err(|error| failed("open", path, error))?;
    if !info.is_dir() {
        return Err(not_private(path, "it is a link", FOLDER_MODE));
    }
    check_owner(path, &info, FOLDER_MODE)?;
    fs::canonicalize(path).map_err(|error| failed("open", path, error))
}

/// Waits until the names in a folder are on the disk. An empty path is the present folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Checks a file, if there is one.
///
/// # Errors
///
/// It is a link or no file, belongs to somebody else, or is open to others.
pub(crate) fn file(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(info) => check_file(path, &info),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("open", path, error)),
    }
}

/// Makes an empty private file unless there is one, and checks the one that is there.
///
/// A file that is there is not opened: closing it would free the locks that this process holds on
/// it through the database. For the same reason only one thread at a time may make one.
///
/// # Errors
///
/// It cannot be made, or is not private.
pub(crate) fn ensure(path: &Path) -> Result<(), StoreError> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    match options().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => file(path),
        Err(error) => Err(failed("create", path, error)),
    }
}

/// Reads a private file; of one that is longer than `bytes_max`, one byte more than that, so that
/// its length tells. `None` when there is no such file.
///
/// # Errors
///
/// It cannot be read, or is not private.
pub(crate) fn read(path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, StoreError> {
    let unreadable = |error| failed("read", path, error);
    let file = match options().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    check_file(path, &file.metadata().map_err(unreadable)?)?;
    let mut bytes = Vec::with_capacity(bytes_max + 1);
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some(bytes))
}

/// Writes a file of a fixed size of less than one sector over its former self, in one piece and
/// without taking new room on the disk: whatever fails leaves the old bytes or the new ones. Does not
/// wait for the disk. Only one process at a time may do this to a file, and nobody may read it
/// meanwhile.
///
/// A file that is missing, or has another size, is put in its place as by [`put`].
///
/// # Errors
///
/// It cannot be written.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let present = options().write(true).open(path).and_then(|file| {
        let fits = file.metadata()?.len() == bytes.len() as u64;
        Ok(fits.then_some(file))
    });
    match present {
        Ok(Some(file)) => file.write_all_at(bytes, 0).map_err(|error| failed("write", path, error)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("write", path, error)),
        Ok(None) | Err(_) => put(path, bytes),
    }
}

/// Puts a file in its place as a whole, and returns when it is on the disk. Only one process at a
/// time may do this to a file.
///
/// # Errors
///
/// It cannot be written; what was there before is still there.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let fresh = path.with_added_extension(FRESH);
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&fresh)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&fresh, path))
        .and_then(|()| sync_folder(folder));
    written.map_err(|error| failed("write", path, error))
}

/// What appears is private from the start; links are not followed, pipes not waited for.
fn options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE).custom_flags(flags.bits().cast_signed());
    options
}

fn check_file(path: &Path, info: &Metadata) -> Result<(), StoreError> {
    if !info.is_file() {
        return Err(not_private(path, "it is no plain file", FILE_MODE));
    }
    check_owner(path, info, FILE_MODE)
}

fn check_owner(path: &Path, info: &Metadata, mode: u32) -> Result<(), StoreError> {
    if info.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_private(path, "it belongs to somebody else", mode));
    }
    if info.permissions().mode() & 0o777 & !mode != 0 {
        return Err(not_private(path, "others can use it", mode));
    }
    Ok(())
}

fn not_private(path: &Path, why: &'static str, mode: u32) -> StoreError {
    StoreError::NotPrivate { path: path.to_owned(), why, mode }
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::File { verb, path: path.to_owned(), source }
}
