//! The private folder of a run: made before it, measured during it, removed after it.
//!
//! What a program leaves there may be nested deeper than a path can be long, closed to its owner, or
//! more than one wants to count. So it is counted only up to a limit, and removed without going
//! down: every folder that is found is first moved up to the top.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// How every private folder is called.
const PREFIX: &str = "sallyport-script-";

/// Most files that are counted: a program that needs more of them is out of bounds.
const ENTRIES_MAX: usize = 10_000;

/// Deepest folder that is counted. What is deeper has no business being there, and paths end.
const DEPTH_MAX: usize = 64;

/// The unit in which the system counts what a file takes.
const BLOCK_BYTES: u64 = 512;

/// Only its owner can look inside.
const PRIVATE: u32 = 0o700;

/// A folder that belongs to one run.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a folder among the temporary ones.
    pub(super) fn make(temporary: &Path) -> io::Result<Self> {
        let private = fs::Permissions::from_mode(PRIVATE);
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(temporary)?;
        Ok(Self { path: folder.keep() })
    }

    /// Finds the folder that a watcher left, if it is one that it can have made.
    pub(crate) fn left(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        (name.starts_with(PREFIX) && path.is_dir()).then_some(Self { path })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How much it holds; more than any limit, where there is too much to count.
    pub(super) fn bytes(&self) -> u64 {
        let mut folders = vec![(self.path.clone(), 0)];
        let (mut entries, mut bytes) = (0, 0_u64);
        while let Some((folder, depth)) = folders.pop() {
            // One that is gone, or closed by the program, holds nothing that could be counted.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
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

    /// Removes it with all it holds, when nobody is left who could change it.
    pub(crate) fn remove(self) -> io::Result<()> {
        let mut moved = 0_u64;
        while let Some(folder) = self.first_folder(&mut moved)? {
            open_up(&folder)?;
            for entry in fs::read_dir(&folder)? {
                self.lift(&entry?, &mut moved)?;
            }
            fs::remove_dir(&folder)?;
        }
        fs::remove_dir(&self.path)
    }

    /// Removes files of the top until there is a folder, and returns that.
    fn first_folder(&self, moved: &mut u64) -> io::Result<Option<PathBuf>> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                return Ok(Some(entry.path()));
            }
            self.lift(&entry, moved)?;
        }
        Ok(None)
    }

    /// Removes a file; moves a folder to the top, under a name that nobody else has.
    fn lift(&self, entry: &fs::DirEntry, moved: &mut u64) -> io::Result<()> {
        let path = entry.path();
        if !entry.file_type()?.is_dir() {
            return fs::remove_file(path);
        }
        open_up(&path)?;
        loop {
            *moved += 1;
            let place = self.path.join(format!(".{moved}"));
            if place.symlink_metadata().is_err() {
                return fs::rename(path, place);
            }
        }
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    /// A private folder among temporary ones of its own.
    fn scratch() -> (tempfile::TempDir, Scratch) {
        let temporary = tempfile::tempdir().unwrap();
        let scratch = Scratch::make(temporary.path()).unwrap();
        (temporary, scratch)
    }

    fn nest(at: &Path, levels: usize) {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let mut folder = openat(CWD, at, flags, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", flags, Mode::empty()).unwrap();
        }
    }

    #[track_caller]
    fn check_removal(fill: impl Fn(&Path)) {
        let (temporary, scratch) = scratch();
        fill(scratch.path());
        scratch.remove().unwrap();
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
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
        assert_eq!(scratch.bytes(), 0);
        fs::write(scratch.path().join("file"), vec![1; 100_000]).unwrap();
        fs::create_dir(scratch.path().join("folder")).unwrap();
        fs::write(scratch.path().join("folder/file"), vec![1; 100_000]).unwrap();
        assert!((200_000..300_000).contains(&scratch.bytes()), "{}", scratch.bytes());
        nest(scratch.path(), DEPTH_MAX + 3);
        assert_eq!(scratch.bytes(), u64::MAX);
        scratch.remove().unwrap();
    }
}
