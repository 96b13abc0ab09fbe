//! A temporary folder of this machine that guests see: a scratch folder, or copies of granted
//! files.
//!
//! The folder is locked while its process uses it, so that another process can find and remove a
//! folder that a killed process left. Removing does not recurse: a guest can nest folders deeper
//! than the limit on descriptors or the stack allows.

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

/// The prefix of every such folder's name.
const FOLDER_NAME_PREFIX: &str = "sallyport-scratch-";

/// How often a new folder is created if another process removes it before it is locked. More
/// failures than this are not an accident.
const TRIES_MAX: u32 = 8;

/// The cleanup, which may be slow, runs once per process in the background.
static CLEANUP_STARTED: Once = Once::new();

/// A folder of this process, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ProcessTempFolder {
    path: PathBuf,
    /// Keeps the folder locked until this is dropped or the process ends for any reason.
    _lock: File,
}

impl ProcessTempFolder {
    /// Creates an empty temporary folder.
    pub(crate) fn create() -> io::Result<Self> {
        CLEANUP_STARTED.call_once(|| drop(thread::spawn(remove_stale_folders)));
        for _ in 0..TRIES_MAX {
            let path = tempfile::Builder::new().prefix(FOLDER_NAME_PREFIX).tempdir()?.keep();
            if let Some(lock) = lock_own_folder(&path) {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::Error::other("folders vanish as soon as they are made"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder again.
    pub(super) fn open(&self) -> io::Result<File> {
        // Not a duplicate of the locked descriptor, which would share its lock.
        open_folder(&self.path)
    }

    /// Removes the folder with its contents. No other process may change it in the meantime.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove_folder(&self.path)
    }
}

impl Drop for ProcessTempFolder {
    fn drop(&mut self) {
        // The next process tries again.
        let _ = self.remove();
    }
}

/// Removes the folders of this user whose processes are gone. A folder that cannot be removed
/// stays.
fn remove_stale_folders() {
    let entries = fs::read_dir(env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| {
        entry.file_name().as_encoded_bytes().starts_with(FOLDER_NAME_PREFIX.as_bytes())
    }) {
        let path = entry.path();
        // Locked during the removal, so that no two processes remove it at the same time.
        if let Some(_lock) = lock_own_folder(&path) {
            let _ = remove_folder(&path);
        }
    }
}

/// Locks a folder of this user. Returns `None` if another process has it or it is gone.
fn lock_own_folder(path: &Path) -> Option<File> {
    let lock = open_folder(path).ok()?;
    lock.try_lock().ok()?;
    let is_own = |about: &fs::Metadata| about.is_dir() && about.uid() == getuid().as_raw();
    let (here, named) = (lock.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    (is_own(&here) && here.ino() == named.ino()).then_some(lock)
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Removes a folder without recursion: each folder below it moves to the top first.
fn remove_folder(top: &Path) -> io::Result<()> {
    let mut moved = 0;
    while let Some(folder) = find_subfolder(top)? {
        for entry in fs::read_dir(&folder)? {
            remove_or_move_up(top, &entry?, &mut moved)?;
        }
        fs::remove_dir(&folder)?;
    }
    fs::remove_dir(top)
}

/// Removes files at the top until it finds a folder, and returns that folder.
fn find_subfolder(top: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(top)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            return Ok(Some(entry.path()));
        }
        fs::remove_file(entry.path())?;
    }
    Ok(None)
}

/// Removes a file, or moves a folder to the top under an unused name.
fn remove_or_move_up(top: &Path, entry: &DirEntry, moved: &mut u64) -> io::Result<()> {
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

    /// More levels than most systems allow descriptors per process, or a stack can hold.
    const DEEP: usize = 40_000;

    #[test]
    fn folders_that_are_nested_without_end_are_removed() {
        let own = ProcessTempFolder::create().unwrap();
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
        let lock = ProcessTempFolder::create().unwrap();
        let named = |name: &str| {
            env::temp_dir().join(format!("{FOLDER_NAME_PREFIX}{name}-{}", process::id()))
        };
        let (left, link) = (named("left"), named("link"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        remove_stale_folders();
        assert!(!left.exists() && lock.path().exists() && elsewhere.path().exists());
        fs::remove_file(link).unwrap();
    }
}
