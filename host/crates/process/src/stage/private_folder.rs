//! The private folder of a run: created before it, measured during it, removed after it.
//!
//! A program may leave folders that are nested deeper than the maximum length of a path, closed to
//! their owner, or too many to count. So they are counted only up to a limit, and removed without
//! descending: each folder found is first moved to the top.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The prefix of every private folder's name.
const PREFIX: &str = "sallyport-script-";

/// Maximum number of files that are counted. More are treated as over the limit.
const ENTRIES_MAX: usize = 10_000;

/// Maximum depth that is counted. Deeper folders are treated as over the limit, and paths have a
/// maximum length.
const DEPTH_MAX: usize = 64;

/// The unit in which the system counts the size of a file on disk.
const BLOCK_BYTES: u64 = 512;

/// Only its owner can access it.
const PRIVATE: u32 = 0o700;

/// The private folder of one run.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Creates a folder among the temporary ones.
    pub(super) fn create_in(temporary: &Path) -> io::Result<Self> {
        let private = fs::Permissions::from_mode(PRIVATE);
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(temporary)?;
        Ok(Self { path: folder.keep() })
    }

    /// Returns the folder that a watcher left, if the name is one that a watcher makes.
    pub(crate) fn from_leftover(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        (name.starts_with(PREFIX) && path.is_dir()).then_some(Self { path })
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its size on disk; [`u64::MAX`] if it contains too much to count, or a folder that
    /// cannot be read: its program can fill it all the same.
    pub(super) fn size_on_disk(&self) -> u64 {
        let mut folders = vec![(self.path.clone(), 0)];
        let (mut entries, mut bytes) = (0, 0_u64);
        while let Some((folder, depth)) = folders.pop() {
            let listed = match fs::read_dir(folder) {
                Ok(listed) => listed,
                Err(error) if is_gone(&error) => continue,
                Err(_) => return u64::MAX,
            };
            for entry in listed.flatten() {
                let about = match entry.metadata() {
                    Ok(about) => about,
                    Err(error) if is_gone(&error) => continue,
                    Err(_) => return u64::MAX,
                };
                entries += 1;
                bytes = bytes.saturating_add(about.blocks().saturating_mul(BLOCK_BYTES));
                if entries > ENTRIES_MAX || depth > DEPTH_MAX {
                    return u64::MAX;
                }
                if about.is_dir() {
                    folders.push((entry.path(), depth + 1));
                }
            }
        }
        bytes
    }

    /// Removes it with its contents. No process may still be able to change it.
    pub(crate) fn remove(self) -> io::Result<()> {
        let mut moved = 0_u64;
        while let Some(folder) = self.remove_until_folder(&mut moved)? {
            make_accessible(&folder)?;
            for entry in fs::read_dir(&folder)? {
                self.remove_or_move_up(&entry?, &mut moved)?;
            }
            fs::remove_dir(&folder)?;
        }
        fs::remove_dir(&self.path)
    }

    /// Removes files at the top until it finds a folder, and returns that.
    fn remove_until_folder(&self, moved: &mut u64) -> io::Result<Option<PathBuf>> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                return Ok(Some(entry.path()));
            }
            self.remove_or_move_up(&entry, moved)?;
        }
        Ok(None)
    }

    /// Removes a file, or moves a folder to the top under an unused name.
    fn remove_or_move_up(&self, entry: &fs::DirEntry, moved: &mut u64) -> io::Result<()> {
        let path = entry.path();
        if !entry.file_type()?.is_dir() {
            return fs::remove_file(path);
        }
        make_accessible(&path)?;
        loop {
            *moved += 1;
            let place = self.path.join(format!(".{moved}"));
            if place.symlink_metadata().is_err() {
                return fs::rename(path, place);
            }
        }
    }
}

/// Whether the program has removed a file, or put another one in its place, while it was counted.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn make_accessible(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    /// A private folder among temporary ones of its own.
    fn scratch() -> (tempfile::TempDir, PrivateFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let scratch = PrivateFolder::create_in(temporary.path()).unwrap();
        (temporary, scratch)
    }

    fn nest(at: &Path, levels: usize) {
        nest_named(at, "d", levels);
    }

    fn nest_named(at: &Path, name: &str, levels: usize) {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut folder = openat(CWD, at, flags, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&folder, name, Mode::RWXU).unwrap();
            folder = openat(&folder, name, flags, Mode::empty()).unwrap();
        }
    }

    #[track_caller]
    fn check_removal(fill: impl Fn(&Path)) {
        let (temporary, scratch) = scratch();
        fill(scratch.path());
        scratch.remove().unwrap();
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }

    /// It counted as empty.
    #[test]
    fn a_folder_that_cannot_be_read_had_no_size() {
        let (_temporary, scratch) = scratch();
        // Too deep for a path, which also root cannot read.
        nest_named(scratch.path(), &"n".repeat(255), 17);
        assert_eq!(scratch.size_on_disk(), u64::MAX);
        scratch.remove().unwrap();
    }

    #[test]
    fn whatever_is_left_is_removed() {
        check_removal(|_| ());
        check_removal(|at| nest(at, 3000));
        check_removal(|at| {
            for number in 0..50 {
                fs::create_dir_all(at.join(format!("{number}/x"))).unwrap();
                fs::write(at.join(format!("{number}/.1")), "").unwrap();
                fs::create_dir(at.join(format!(".{number}"))).unwrap();
            }
        });
        check_removal(|at| {
            fs::create_dir_all(at.join("closed/inner")).unwrap();
            for folder in ["closed/inner", "closed"] {
                fs::set_permissions(at.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
            }
        });
        check_removal(|at| {
            fs::write(at.join(OsString::from_vec(b"\xff\n".to_vec())), "x").unwrap();
            fs::write(at.join("n".repeat(255)), "x").unwrap();
        });
    }

    #[test]
    fn a_link_is_removed_and_not_what_it_leads_to() {
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("kept"), "x").unwrap();
        check_removal(|at| {
            fs::create_dir(at.join("folder")).unwrap();
            for link in ["link", "folder/link"] {
                std::os::unix::fs::symlink(other.path(), at.join(link)).unwrap();
            }
        });
        assert!(other.path().join("kept").exists());
    }

    #[test]
    fn what_it_holds_is_counted_up_to_a_limit() {
        let (_temporary, scratch) = scratch();
        assert_eq!(scratch.size_on_disk(), 0);
        fs::write(scratch.path().join("file"), vec![1; 100_000]).unwrap();
        fs::create_dir(scratch.path().join("folder")).unwrap();
        fs::write(scratch.path().join("folder/file"), vec![1; 100_000]).unwrap();
        assert!((200_000..300_000).contains(&scratch.size_on_disk()), "{}", scratch.size_on_disk());
        nest(scratch.path(), DEPTH_MAX + 3);
        assert_eq!(scratch.size_on_disk(), u64::MAX);
        scratch.remove().unwrap();
    }
}
