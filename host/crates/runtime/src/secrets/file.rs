//! Values in files: one value per file, readable by its owner only.
//!
//! A file that other users can read does not keep a secret, and one that they can replace may
//! contain anything. The check applies to the opened file, so that the file cannot be swapped after
//! it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};
use sallyport_contract::Secret;
use zeroize::Zeroizing;

use super::{SecretProblem, VALUE_BYTES_MAX, parse_secret_value};
use crate::atomic_file;

/// Permission bits of the group and of all other users.
const OTHERS_MODE: u32 = 0o077;

/// Returns the value in a file.
pub(super) fn read(path: &Path) -> Result<Secret, SecretProblem> {
    let file = open_no_follow(path)?;
    check_permissions(&file.metadata()?)?;
    // One allocation, because a growing vector would leave copies of the value in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(VALUE_BYTES_MAX + 1));
    file.take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    parse_secret_value(&bytes)
}

/// Writes a value to a file, as a whole or not at all.
pub(super) fn write(path: &Path, value: &Secret) -> Result<(), SecretProblem> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => return Err(SecretProblem::Link),
        Ok(metadata) if !metadata.is_file() => return Err(SecretProblem::NotAFile),
        _ => {}
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Ok(atomic_file::replace_file(path, value.expose().as_bytes(), atomic_file::PRIVATE_MODE)?)
}

/// Removes a value's file.
pub(super) fn remove(path: &Path) -> Result<(), SecretProblem> {
    check_permissions(&open_no_follow(path)?.metadata()?).or_else(|problem| match problem {
        // An exposed file of the user's own should be removed all the more.
        SecretProblem::Exposed { .. } => Ok(()),
        other => Err(other),
    })?;
    Ok(fs::remove_file(path)?)
}

/// Opens a file without following a symbolic link, and without waiting for the writer of a pipe.
fn open_no_follow(path: &Path) -> Result<File, SecretProblem> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(problem_from_io_error)
}

fn problem_from_io_error(error: io::Error) -> SecretProblem {
    match error.kind() {
        io::ErrorKind::NotFound => SecretProblem::Missing,
        _ if Errno::from_io_error(&error) == Some(Errno::LOOP) => SecretProblem::Link,
        _ => SecretProblem::Io(error),
    }
}

fn check_permissions(metadata: &fs::Metadata) -> Result<(), SecretProblem> {
    if !metadata.is_file() {
        return Err(SecretProblem::NotAFile);
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(SecretProblem::NotOurs { uid: metadata.uid() });
    }
    let mode = metadata.mode() & 0o777;
    if mode & OTHERS_MODE != 0 { Err(SecretProblem::Exposed { mode }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn folder_with(content: &[u8], mode: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_of_ones_own_is_read() {
        for mode in [0o600, 0o400, 0o700] {
            let (_folder, path) = folder_with(b"hush-hush\n", mode);
            assert_eq!(read(&path).unwrap(), Secret::new("hush-hush"));
        }
    }

    #[test]
    fn a_file_that_others_may_open_is_refused() {
        for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666] {
            let (_folder, path) = folder_with(b"hush-hush\n", mode);
            let problem = read(&path).unwrap_err();
            assert_eq!(problem.to_string(), format!("others may open it (mode {mode:o})"));
        }
    }

    #[test]
    fn what_is_no_file_of_its_own_is_refused() {
        let (folder, path) = folder_with(b"hush-hush\n", 0o600);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        let pipe = folder.path().join("pipe");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
        for (path, want) in [
            (link.as_path(), "it is a symbolic link"),
            (&pipe, "it is not a regular file"),
            (folder.path(), "it is not a regular file"),
            (Path::new("/dev/null"), "it is not a regular file"),
            (&folder.path().join("nothing"), "it is not there"),
        ] {
            assert_eq!(read(path).unwrap_err().to_string(), want, "{path:?}");
            assert_eq!(remove(path).unwrap_err().to_string(), want, "{path:?}");
        }
        for path in [link.as_path(), &pipe, folder.path()] {
            assert!(write(path, &Secret::new("other")).is_err(), "{path:?}");
        }
        assert_eq!(read(&path).unwrap(), Secret::new("hush-hush"));
    }

    #[test]
    fn a_file_that_is_too_long_is_read_no_further() {
        let (_folder, path) = folder_with(&vec![b'x'; VALUE_BYTES_MAX + 2], 0o600);
        assert!(matches!(read(&path), Err(SecretProblem::TooLong { .. })));
        assert!(matches!(read(Path::new("/dev/zero")), Err(SecretProblem::NotAFile)));
    }

    #[test]
    fn a_file_of_somebody_else_is_refused() {
        let (_folder, path) = folder_with(b"hush-hush\n", 0o600);
        // Only an administrator can change a file's owner, so other users have nothing to test
        // here.
        let given = std::os::unix::fs::chown(&path, Some(65_534), None);
        let refused = matches!(read(&path), Err(SecretProblem::NotOurs { uid: 65_534 }));
        assert_eq!(refused, given.is_ok());
    }

    #[test]
    fn what_is_written_can_be_read_by_its_owner_alone() {
        let (folder, path) = folder_with(b"old and open", 0o644);
        let nested = folder.path().join("a/b/value");
        for path in [&path, &nested] {
            write(path, &Secret::new("new-value")).unwrap();
            assert_eq!(read(path).unwrap(), Secret::new("new-value"));
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
            remove(path).unwrap();
            assert!(!path.exists());
        }
        assert_eq!(fs::metadata(nested.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    }
}
