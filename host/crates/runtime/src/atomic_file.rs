//! Atomic replacement of files: after a failure, a crash or a power loss, the path contains either
//! the old file or the new one.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown},
    path::Path,
};

use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

/// The mode of a file that only its owner can access.
pub const PRIVATE_MODE: u32 = 0o600;

/// Permission bits of the group.
const GROUP_MODE: u32 = 0o070;

/// Replaces or creates a file, and returns once it is on disk. The folder must exist. A symbolic
/// link is replaced, not followed.
///
/// # Errors
///
/// The folder cannot be written to, or the disk is full. The old file is unchanged, unless only the
/// folder could not be synced: then the new file is there, and the old one may be back after a power
/// loss.
pub fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = parent_folder(path);
    write_temp_file(folder, bytes, |_| Ok(mode))?.persist(path)?;
    sync_folder(folder)
}

/// Replaces a file of the user as a whole, or creates it for its owner alone. A symbolic link is
/// followed, so that a file stored elsewhere stays there. The mode and the group do not change; if
/// the user may not give a file to that group, the new file has no permissions for a group. An
/// access list is not kept.
///
/// # Errors
///
/// As for [`replace_file`]; or the folder cannot be created.
pub fn replace_user_file(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = parent_folder(&path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let known = fs::metadata(&path).ok();
    let mode = |new: &File| known.map_or(Ok(PRIVATE_MODE), |old| take_over_group(new, &old));
    write_temp_file(folder, text.as_bytes(), mode)?.persist(&path)?;
    sync_folder(folder)
}

/// Gives a new file the group of the old one, and returns its mode. The permissions of the group
/// were meant for that group only.
fn take_over_group(new: &File, old: &fs::Metadata) -> io::Result<u32> {
    let mode = old.permissions().mode();
    let is_same = new.metadata()?.gid() == old.gid();
    match is_same || fchown(new, None, Some(old.gid())).is_ok() {
        true => Ok(mode),
        false => Ok(mode & !GROUP_MODE),
    }
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
    write_temp_file(folder, bytes, |_| Ok(PRIVATE_MODE))?.persist_noclobber(path)?;
    sync_folder(folder)
}

fn write_temp_file(
    folder: &Path,
    bytes: &[u8],
    mode: impl FnOnce(&File) -> io::Result<u32>,
) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    let mode = mode(file.as_file())?;
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

    /// A file that a group could read was replaced with one that the user's own group could read.
    #[test]
    fn the_group_of_a_replaced_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace_user_file(&path, "one").unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), PRIVATE_MODE);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        // Most users cannot give a file to another group.
        let group = fs::metadata(&path).unwrap().gid() + 1;
        let is_given = std::os::unix::fs::chown(&path, None, Some(group)).is_ok();
        replace_user_file(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(mode(), 0o640);
        assert_eq!(fs::metadata(&path).unwrap().gid() == group, is_given);
        assert_eq!(names(folder.path()), ["file"]);
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
