//! A temporary folder of this machine that guests see: a scratch, or copies of granted files. It is
//! held for as long as its process lives, so that the next process finds and removes what a killed one
//! left; and removed without going down, since a guest can nest folders deeper than there are
//! descriptors, or room on a stack.

use std::{
    env,
    fs::{self, DirEntry, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Once,
    thread,
};

use rustix::{fs::OFlags, process::getuid};

/// How every such folder is called.
const PREFIX: &str = "sallyport-scratch-";

/// How often a folder is made that somebody takes for a left one before it is held: more would be no
/// accident.
const TRIES_MAX: u32 = 8;

/// Once for each process; it may take its time, and nobody waits for it.
static SWEPT: Once = Once::new();

/// A folder that is this process's own, and is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
    /// Locked until the process ends, however it does.
    _held: File,
}

impl OwnFolder {
    /// Makes an empty folder among the temporary ones.
    pub(crate) fn make() -> io::Result<Self> {
        SWEPT.call_once(|| drop(thread::spawn(sweep)));
        for _ in 0..TRIES_MAX {
            let path = tempfile::Builder::new().prefix(PREFIX).tempdir()?.keep();
            if let Some(held) = hold(&path) {
                return Ok(Self { path, _held: held });
            }
        }
        Err(io::Error::other("folders vanish as soon as they are made"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it once more.
    pub(super) fn open(&self) -> io::Result<File> {
        // A copy of the descriptor would be the same hold, and lock and unlock with it.
        open(&self.path)
    }

    /// Removes it with all it holds, while nobody else changes it.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What cannot be removed now is tried once more by the next process.
        let _ = self.remove();
    }
}

/// Removes the folders of this user whose processes are gone. What cannot be removed stays.
fn sweep() {
    let entries = fs::read_dir(env::temp_dir()).into_iter().flatten().flatten();
    for entry in
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    {
        let path = entry.path();
        // It is held while it is removed, so that no two do it at once.
        if let Some(_held) = hold(&path) {
            let _ = remove(&path);
        }
    }
}

/// Takes hold of a folder of this user, unless somebody has it or it is gone.
fn hold(path: &Path) -> Option<File> {
    let held = open(path).ok()?;
    held.try_lock().ok()?;
    let is_own = |about: &fs::Metadata| about.is_dir() && about.uid() == getuid().as_raw();
    let (here, named) = (held.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    (is_own(&here) && here.ino() == named.ino()).then_some(held)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Removes a folder: each that is found below moves up to the top first.
fn remove(top: &Path) -> io::Result<()> {
    let mut moved = 0;
    while let Some(folder) = first_folder(top)? {
        for entry in fs::read_dir(&folder)? {
            lift(top, &entry?, &mut moved)?;
        }
        fs::remove_dir(&folder)?;
    }
    fs::remove_dir(top)
}

/// Removes files of the top until there is a folder, and returns that.
fn first_folder(top: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(top)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            return Ok(Some(entry.path()));
        }
        fs::remove_file(entry.path())?;
    }
    Ok(None)
}

/// Removes a file; moves a folder to the top, under a name that nobody else has.
fn lift(top: &Path, entry: &DirEntry, moved: &mut u64) -> io::Result<()> {
    if !entry.file_type()?.is_dir() {
        return fs::remove_file(entry.path());
    }
    loop {
        *moved += 1;
        let place = top.join(format!(".{moved}"));
        if place.symlink_metadata().is_err() {
            return fs::rename(entry.path(), place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use rustix::fs::{CWD, Mode, mkdirat, openat};

    use super::*;

    /// More levels than a process may have descriptors on most systems, or a stack has room for.
    const DEEP: usize = 40_000;

    #[test]
    fn folders_that_are_nested_without_end_are_removed() {
        let own = OwnFolder::make().unwrap();
        fs::create_dir_all(own.path().join(".1/.2")).unwrap();
        let mut folder = openat(CWD, own.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..DEEP {
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        let path = own.path().to_owned();
        drop(own);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_held_is_not() {
        let held = OwnFolder::make().unwrap();
        let named = |name: &str| env::temp_dir().join(format!("{PREFIX}{name}-{}", process::id()));
        let (left, link) = (named("left"), named("link"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        sweep();
        assert!(!left.exists() && held.path().exists() && elsewhere.path().exists());
        fs::remove_file(link).unwrap();
    }
}
