//! Undo: copies of the files of the user that calls are about to change.
//!
//! Before the first change of a file in a call, the file layer hands the file to the
//! `StepRecorder` of the run, which copies it. When the run ends, the recorder notes what it left
//! behind. A call with changes is one [`UndoStep`]. Putting one back ([`restore`]) leaves alone
//! every file that is not as the call left it.
//!
//! A hard link or a shared copy would not do as a copy, because guests write into files in place.
//! Layout of the folder of a session, which only its owner can open:
//!
//! - `NNNNNN.jsonl`: a step, one line per fact, so that a killed program leaves a readable file. It
//!   is locked while the call runs.
//! - `NNNNNN-N.copy`: the contents of one of its files.

pub(crate) mod recorder;
pub mod restore;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawMode, fstat, openat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::cache::open_private;

/// Largest file of which a copy is kept, in bytes. It fits nearly every text that a tool writes.
pub const COPY_BYTES_MAX: u64 = 4 << 20;

/// Most bytes of copies of one session. Beyond it the oldest steps are given up.
pub const SESSION_BYTES_MAX: u64 = 64 << 20;

/// Most steps of one session. Nobody goes back further one by one.
const STEPS_MAX: usize = 100;

/// Most paths of one step. They are hashed when the call ends, which must not take a second. A call
/// that changes more is a build or an unpacked archive, which nobody undoes by reading a list.
pub const PATHS_MAX: usize = 256;

/// Largest description of a step, in bytes: two long paths for each of its paths.
const STEP_BYTES_MAX: u64 = 4 << 20;

/// Longest session id that is the name of a folder.
const SESSION_ID_BYTES_MAX: usize = 128;

/// Flags for a folder on the way to a file. None of them follows a link.
const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Flags for a file that is read. A pipe does not wait for its other end.
const FILE_FLAGS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// A call that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    number: u32,
    /// The tool that was called, as `plugin.tool`.
    pub tool: String,
    entries: Vec<KeptEntry>,
    /// What the call left, one for each entry. `None` if the program ended before the call did.
    after: Option<Vec<EntryState>>,
    /// Whether the call changed more paths than are kept.
    pub is_partial: bool,
}

impl UndoStep {
    /// Whether the program ended before the call did, so that what the call left is not known.
    pub fn is_cut_off(&self) -> bool {
        self.after.is_none()
    }
}

/// A path before a call changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptEntry {
    /// The granted folder, and its identity on its disk.
    root: PathBuf,
    device: u64,
    inode: u64,
    /// The path in the granted folder, without any link in it.
    path: PathBuf,
    /// The path as the plugin sees it.
    guest: String,
    before: EntryBefore,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EntryBefore {
    Absent,
    Folder,
    /// A folder that the call moved, with all that is in it.
    MovedFolder,
    /// A copy with this number, the permissions, the owner and group, and the hash of the contents.
    File {
        copy: u32,
        mode: RawMode,
        owner: (u32, u32),
        digest: String,
    },
    /// There is no copy, for this reason.
    Unkept(String),
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EntryState {
    Absent,
    Folder,
    File {
        digest: String,
    },
    /// A file that is too large to be hashed: its identity, size and time of change.
    LargeFile {
        inode: u64,
        bytes: u64,
        changed: (i64, i64),
    },
    /// Something that cannot be compared: a link, a device, an unreadable file.
    Other,
}

/// A line of a step's description.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StepLine {
    Call {
        tool: String,
    },
    Before(KeptEntry),
    /// The call changed more paths.
    Partial,
    After(Vec<EntryState>),
}

/// The steps of one session.
#[derive(Debug, Clone)]
pub struct UndoHistory {
    folder: PathBuf,
}

impl UndoHistory {
    /// The history of a session, in a private folder for those of all sessions. Returns `None` for
    /// an id that cannot be the name of a folder.
    pub fn of_session(all_sessions: &Path, session_id: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = (1..=SESSION_ID_BYTES_MAX).contains(&session_id.len());
        (is_name && session_id.bytes().all(is_plain))
            .then(|| Self { folder: all_sessions.join(session_id) })
    }

    /// The steps, newest first. Unreadable ones and those of running calls are left out.
    pub fn steps(&self) -> Vec<UndoStep> {
        self.step_numbers().into_iter().rev().filter_map(|number| self.read_step(number)).collect()
    }

    /// Gives a step up, with its copies.
    pub fn remove_step(&self, step: &UndoStep) {
        self.remove_files(step.number);
    }

    /// Removes everything.
    pub fn remove(&self) {
        // What cannot be removed now is removed with the next session.
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// The numbers of the steps, oldest first. A copy without its step counts too, because a call
    /// whose step was given up while it ran may leave one.
    fn step_numbers(&self) -> Vec<u32> {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let number = |name: OsString| name.to_str()?.split(['-', '.']).next()?.parse().ok();
        let mut numbers: Vec<u32> = names.filter_map(|entry| number(entry.file_name())).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    fn step_file(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number:06}.jsonl"))
    }

    fn copy_file(&self, number: u32, copy: u32) -> PathBuf {
        self.folder.join(format!("{number:06}-{copy}.copy"))
    }

    fn read_step(&self, number: u32) -> Option<UndoStep> {
        let mut text = String::new();
        let mut file = open_private(&self.step_file(number)).ok()?;
        // The recorder of a running call has it locked.
        file.try_lock_shared().ok()?;
        (&mut file).take(STEP_BYTES_MAX).read_to_string(&mut text).ok()?;
        let (tool, entries) = (String::new(), Vec::new());
        let mut step = UndoStep { number, tool, entries, after: None, is_partial: false };
        // The last line of a killed program may be torn.
        for line in text.lines().map_while(|line| serde_json::from_str(line).ok()) {
            match line {
                StepLine::Call { tool } => step.tool = tool,
                StepLine::Before(entry) => step.entries.push(entry),
                StepLine::Partial => step.is_partial = true,
                StepLine::After(after) => step.after = Some(after),
            }
        }
        Some(step)
    }

    /// Reads a copy. After a crash of the machine it may be damaged, which the hash shows.
    fn read_copy(&self, number: u32, copy: u32, digest: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = open_private(&self.copy_file(number, copy))?;
        file.take(COPY_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        match blake3::hash(&bytes).to_hex().as_str() == digest {
            true => Ok(bytes),
            false => Err(io::Error::other("it is damaged")),
        }
    }

    fn remove_files(&self, number: u32) {
        let prefix = format!("{number:06}");
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| is_of_step(&entry.file_name(), &prefix)) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// The bytes of all copies.
    fn copied_bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    }
}

fn is_of_step(name: &OsStr, prefix: &str) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(prefix));
    rest.is_some_and(|rest| rest.starts_with(['-', '.']))
}

/// Opens the folder of a path in an open folder, without following any link.
pub(crate) fn open_parent(root: &OwnedFd, path: &Path) -> rustix::io::Result<(OwnedFd, OsString)> {
    let mut names = Vec::new();
    for component in path.components() {
        let Component::Normal(name) = component else { return Err(Errno::INVAL) };
        names.push(name);
    }
    let name = names.pop().ok_or(Errno::INVAL)?;
    let mut folder = openat(root, ".", FOLDER_FLAGS, Mode::empty())?;
    for step in names {
        folder = openat(&folder, step, FOLDER_FLAGS, Mode::empty())?;
    }
    Ok((folder, name.to_owned()))
}

/// Identifies an open folder: its device and its number there.
#[expect(clippy::unnecessary_cast, reason = "their width differs between systems")]
fn folder_identity(folder: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    let (device, inode) = fstat(folder).map(|stat| (stat.st_dev, stat.st_ino))?;
    Ok((device as u64, inode as u64))
}

/// Returns what is at a path in an open folder.
fn read_state(root: &OwnedFd, path: &Path) -> EntryState {
    match open_parent(root, path) {
        Ok((folder, name)) => state_of_entry(&folder, &name),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => EntryState::Absent,
        Err(_) => EntryState::Other,
    }
}

fn state_of_entry(folder: &OwnedFd, name: &OsStr) -> EntryState {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return EntryState::Absent,
        Err(_) => return EntryState::Other,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryState::Folder,
        FileType::RegularFile => {
            open_file(folder, name).and_then(state_of_file).unwrap_or(EntryState::Other)
        }
        _ => EntryState::Other,
    }
}

/// Opens a file for reading. The caller has made sure that it is a regular one, and nothing blocks
/// if it no longer is.
fn open_file(folder: impl AsFd, name: &OsStr) -> io::Result<File> {
    Ok(openat(folder, name, OFlags::RDONLY | FILE_FLAGS, Mode::empty())?.into())
}

/// The hash of a file, or its stamp if it is larger than a copy. The hash is the same after the file
/// was put back, which a larger one never is.
fn state_of_file(file: File) -> io::Result<EntryState> {
    let info = file.metadata()?;
    if info.len() > COPY_BYTES_MAX {
        let changed = (info.ctime(), info.ctime_nsec());
        return Ok(EntryState::LargeFile { inode: info.ino(), bytes: info.len(), changed });
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(COPY_BYTES_MAX + 1))?;
    Ok(EntryState::File { digest: hasher.finalize().to_string() })
}

#[cfg(test)]
mod tests;
