//! Atomic replacement of files: after a failure, a crash or a power loss, the path contains either
//! the old file or the new one.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

/// The mode of a file that only its owner can access.
pub const PRIVATE_MODE: u32 = 0o600;

/// Replaces or creates a file, and returns once it is on disk. The folder must exist. A symbolic
/// link is replaced, not followed.
///
/// # Errors
///
/// The folder cannot be written to, or the disk is full. The old file is unchanged.
pub fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = parent_folder(path);
    write_temp_file(folder, bytes, mode)?.persist(path)?;
    sync_folder(folder)
}

/// Replaces a file of the user as a whole, or creates it for its owner alone. A symbolic link is
/// followed, so that a file stored elsewhere stays there. The permissions do not change.
///
/// # Errors
///
/// The folder cannot be created or written to, or the disk is full. The old file is unchanged.
pub fn replace_user_file(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    DirBuilder::new().recursive(true).mode(0o700).create(parent_folder(&path))?;
    let mode = fs::metadata(&path).map_or(PRIVATE_MODE, |info| info.permissions().mode());
    replace_file(&path, text.as_bytes(), mode)
}

/// Keeps other writers of a file out until it is dropped. It locks the file's folder, because the file
/// itself is replaced. Nobody may take a second one for the same folder meanwhile.
#[derive(Debug)]
pub struct WriteLock {
    _folder: File,
}

impl WriteLock {
    /// Waits until no other process or thread writes. A missing folder is created.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or opened.
    pub fn take(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = parent_folder(&path);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = File::open(folder)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(Self { _folder: folder })
    }
}

/// Creates a file that only its owner can access, and returns once it is on disk.
///
/// # Errors
///
/// The path exists, the folder cannot be written to, or the disk is full. No file is created.
pub fn create_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = parent_folder(path);
    write_temp_file(folder, bytes, PRIVATE_MODE)?.persist_noclobber(path)?;
    sync_folder(folder)
}

fn write_temp_file(folder: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns the folder of a path. The parent of a bare name is an empty path.
fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder. A new name is on disk only when its folder is.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (bytes, mode) in [("one", 0o600), ("two", 0o644), ("", 0o600)] {
            replace_file(&path, bytes.as_bytes(), mode).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
            assert_eq!(names(folder.path()), ["file"]);
        }
    }

    #[test]
    fn nothing_takes_the_place_of_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        create_file(&path, b"one").unwrap();
        let error = create_file(&path, b"two").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(names(folder.path()), ["file"]);
    }

    /// Whatever cannot be replaced stays as it was.
    #[test]
    fn a_failure_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in the way");
        fs::create_dir(&path).unwrap();
        assert!(replace_file(&path, b"new", PRIVATE_MODE).is_err());
        assert!(path.is_dir());
        assert_eq!(names(folder.path()), ["in the way"]);
    }
}
