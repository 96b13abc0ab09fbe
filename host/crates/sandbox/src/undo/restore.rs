//! Puts the files of a step back, as far as they are as the call left them.
//!
//! A file is replaced as a whole, by renaming, so it is never there in part. Links are never
//! followed, neither on the way nor at the end, and the folder has to be the one that was granted.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::PathBuf,
};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, RawMode, fchmod, fchown, linkat, mkdirat, openat, renameat,
        unlinkat,
    },
    process::{Gid, Uid},
    rand::{GetRandomFlags, getrandom},
};

use super::{
    COPY_BYTES_MAX, EntryBefore, EntryState, FILE_FLAGS, KeptEntry, UndoHistory, UndoStep,
    folder_identity, open_file, open_parent, read_state,
};

/// Most bytes of present contents that one plan reads, so that their difference can be shown. It
/// fits more than a user would look at.
const SHOWN_BYTES_MAX: u64 = 2 * COPY_BYTES_MAX;

/// Mode of a folder that is made again, which the process's umask narrows.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// Start of the name of a file that is being written, next to the one that it replaces.
const TEMP_PREFIX: &str = ".sallyport-undo-";

/// What happens to one path of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRestoration {
    /// The path as the plugin sees it.
    pub guest: String,
    /// The path on the host.
    pub host: PathBuf,
    /// What will be done, or why nothing can be.
    pub action: Result<RestoreAction, String>,
    index: usize,
    current: EntryState,
}

/// What puts a path back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreAction {
    /// The contents are replaced: those now, if they are not too long to be shown, and those before.
    Write {
        /// The contents now.
        current: Option<Vec<u8>>,
        /// The contents before the call.
        kept: Vec<u8>,
    },
    /// The removed file is made again, with these contents.
    Create(Vec<u8>),
    /// The new file is removed.
    Remove,
    /// The removed folder is made again.
    CreateFolder,
    /// The new folder is removed, if it is empty.
    RemoveFolder,
}

impl UndoHistory {
    /// Returns what putting a step back would do, in the order in which it is done. Paths that are
    /// as before the call are left out.
    pub fn plan(&self, step: &UndoStep) -> Vec<PathRestoration> {
        let mut shown_bytes = SHOWN_BYTES_MAX;
        let entries = step.entries.iter().enumerate().rev();
        let plan = |(index, entry)| self.plan_entry(step, index, entry, &mut shown_bytes);
        entries.filter_map(plan).collect()
    }

    fn plan_entry(
        &self,
        step: &UndoStep,
        index: usize,
        entry: &KeptEntry,
        shown_bytes: &mut u64,
    ) -> Option<PathRestoration> {
        let (current, action) = match open_root(entry) {
            Ok(root) => {
                let current = read_state(&root, &entry.path);
                if entry.before.is_same(&current) {
                    return None;
                }
                let is_later = |after: &Vec<EntryState>| after.get(index) != Some(&current);
                let action = match step.after.as_ref().is_some_and(is_later) {
                    true => Err("it was changed after the call".to_owned()),
                    false => self.choose_action(step, entry, &root, &current, shown_bytes),
                };
                (current, action)
            }
            Err(error) => (EntryState::Other, Err(format!("its folder cannot be used: {error}"))),
        };
        let host = entry.root.join(&entry.path);
        Some(PathRestoration { guest: entry.guest.clone(), host, action, index, current })
    }

    fn choose_action(
        &self,
        step: &UndoStep,
        entry: &KeptEntry,
        root: &OwnedFd,
        current: &EntryState,
        shown_bytes: &mut u64,
    ) -> Result<RestoreAction, String> {
        let kept = |copy: u32, digest: &str| {
            let bytes = self.read_copy(step.number, copy, digest);
            bytes.map_err(|error| format!("its copy cannot be read: {error}"))
        };
        match (&entry.before, current) {
            (EntryBefore::Unkept(reason), _) => Err(reason.clone()),
            (EntryBefore::MovedFolder, _) => {
                Err("the folder was renamed; rename it back yourself".to_owned())
            }
            (
                EntryBefore::File { copy, digest, .. },
                EntryState::File { .. } | EntryState::LargeFile { .. },
            ) => {
                let current = read_current(root, entry, shown_bytes);
                Ok(RestoreAction::Write { current, kept: kept(*copy, digest)? })
            }
            (EntryBefore::File { copy, digest, .. }, EntryState::Absent) => {
                Ok(RestoreAction::Create(kept(*copy, digest)?))
            }
            (EntryBefore::Absent, EntryState::File { .. } | EntryState::LargeFile { .. }) => {
                Ok(RestoreAction::Remove)
            }
            (EntryBefore::Absent, EntryState::Folder) => Ok(RestoreAction::RemoveFolder),
            (EntryBefore::Folder, EntryState::Absent) => Ok(RestoreAction::CreateFolder),
            _ => Err("something that is not a regular file is there".to_owned()),
        }
    }
}

/// Makes a change of an open folder while nobody else changes it. It is
/// `FolderUsageTable::change_folder` of `files`, which stands above this module because it records
/// here what its changes replace.
type FolderChanger<'a> = dyn Fn(&OwnedFd, &dyn Fn() -> io::Result<()>) -> io::Result<()> + 'a;

/// Puts paths of a step back. Returns those that failed, each with the reason. A step of which
/// everything is back is then given up.
pub(crate) fn restore_paths(
    history: &UndoHistory,
    step: &UndoStep,
    paths: &[PathRestoration],
    change_folder: &FolderChanger<'_>,
) -> Vec<(String, io::Error)> {
    let mut failed = Vec::new();
    for path in paths {
        let (Ok(action), Some(entry)) = (&path.action, step.entries.get(path.index)) else {
            continue;
        };
        if let Err(error) = restore_path(entry, path, action, change_folder) {
            failed.push((path.guest.clone(), error));
        }
    }
    if failed.is_empty() && paths.iter().all(|path| path.action.is_ok()) {
        history.remove_step(step);
    }
    failed
}

fn restore_path(
    entry: &KeptEntry,
    path: &PathRestoration,
    action: &RestoreAction,
    change_folder: &FolderChanger<'_>,
) -> io::Result<()> {
    let root = open_root(entry)?;
    change_folder(&root, &|| {
        if read_state(&root, &entry.path) != path.current {
            return Err(io::Error::other("it was changed just now"));
        }
        perform(&root, entry, action)
    })
}

fn perform(root: &OwnedFd, entry: &KeptEntry, action: &RestoreAction) -> io::Result<()> {
    let (folder, name) = open_parent(root, &entry.path)?;
    let (mode, owner) = match entry.before {
        EntryBefore::File { mode, owner, .. } => (mode, owner),
        _ => (0, (0, 0)),
    };
    match action {
        RestoreAction::Remove => unlinkat(&folder, &name, AtFlags::empty())?,
        RestoreAction::RemoveFolder => unlinkat(&folder, &name, AtFlags::REMOVEDIR)?,
        RestoreAction::CreateFolder => mkdirat(&folder, &name, FOLDER_MODE)?,
        RestoreAction::Write { kept, .. } => {
            let temp = TempEntry::write(&folder, kept, mode, owner)?;
            renameat(&folder, &temp.name, &folder, &name)?;
        }
        RestoreAction::Create(kept) => {
            let temp = TempEntry::write(&folder, kept, mode, owner)?;
            // Unlike a renaming, this replaces nothing that has just been made there.
            linkat(&folder, &temp.name, &folder, &name, AtFlags::empty())?;
        }
    }
    Ok(())
}

/// A file that is being written. Its name is removed when this is dropped.
struct TempEntry<'a> {
    folder: &'a OwnedFd,
    name: String,
}

impl<'a> TempEntry<'a> {
    fn write(
        folder: &'a OwnedFd,
        bytes: &[u8],
        mode: RawMode,
        (user, group): (u32, u32),
    ) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!("{TEMP_PREFIX}{:016x}", u64::from_ne_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | FILE_FLAGS;
        let mut file = File::from(openat(folder, &name, flags, Mode::RUSR | Mode::WUSR)?);
        let temp = Self { folder, name };
        file.write_all(bytes)?;
        let info = file.metadata()?;
        if (info.uid(), info.gid()) != (user, group) {
            fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        fchmod(&file, Mode::from_raw_mode(mode))?;
        file.sync_all()?;
        Ok(temp)
    }
}

impl Drop for TempEntry<'_> {
    fn drop(&mut self) {
        // After a renaming the name is gone already.
        let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

/// Opens the granted folder, if it is still the one that was granted.
fn open_root(entry: &KeptEntry) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let root = openat(CWD, &entry.root, flags, Mode::empty())?;
    match folder_identity(&root)? == (entry.device, entry.inode) {
        true => Ok(root),
        false => Err(io::Error::other("another folder has taken its place")),
    }
}

/// The contents now, or `None` if they cannot be read or are too long to be shown.
fn read_current(root: &OwnedFd, entry: &KeptEntry, shown_bytes: &mut u64) -> Option<Vec<u8>> {
    let (folder, name) = open_parent(root, &entry.path).ok()?;
    let (mut bytes, bytes_max) = (Vec::new(), COPY_BYTES_MAX.min(*shown_bytes));
    open_file(&folder, &name).ok()?.take(bytes_max + 1).read_to_end(&mut bytes).ok()?;
    let length = bytes.len() as u64;
    (length <= bytes_max).then(|| *shown_bytes -= length)?;
    Some(bytes)
}
