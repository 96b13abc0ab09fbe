//! Keeps the files of one run before they are changed.
//!
//! A copy that fails never fails the change: the step then names the file as one that cannot be put
//! back, with the reason.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use rustix::{
    fs::{AtFlags, FileType, statat},
    io::Errno,
};
use sallyport_contract::{AdmittedCall, Services};

use super::{
    COPY_BYTES_MAX, EntryBefore, EntryState, KeptEntry, PATHS_MAX, SESSION_BYTES_MAX,
    STEP_BYTES_MAX, STEPS_MAX, StepLine, UndoHistory, folder_identity, open_file, read_state,
};
use crate::mutex::lock_mutex;

/// Keeps the files of one run. Most runs change none, and then nothing is created.
#[derive(Debug, Default)]
pub(crate) struct StepRecorder(pub(super) Mutex<RecorderState>);

#[derive(Debug, Default)]
pub(super) enum RecorderState {
    /// Nothing is kept.
    #[default]
    Off,
    /// Nothing has changed yet.
    Waiting {
        history: UndoHistory,
        tool: String,
    },
    Open(OpenStep),
}

#[derive(Debug)]
pub(super) struct OpenStep {
    history: UndoHistory,
    number: u32,
    file: File,
    written_bytes: u64,
    /// The bytes of the session's copies when they were last counted, with this step's since then.
    copied_bytes: u64,
    entries: Vec<(Arc<OwnedFd>, KeptEntry)>,
    seen: HashSet<(PathBuf, PathBuf)>,
    /// Whether a line could not be written.
    is_broken: bool,
}

/// A path that is about to be changed.
pub(crate) struct ChangingPath<'a> {
    /// The granted folder, open, and its path on the host.
    pub(crate) root: &'a Arc<OwnedFd>,
    pub(crate) host: &'a Path,
    /// The path in it, and as the plugin sees it.
    pub(crate) relative: &'a Path,
    pub(crate) guest: String,
    /// The open folder that contains the entry, and its name there.
    pub(crate) folder: &'a OwnedFd,
    pub(crate) name: &'a OsStr,
    /// Whether it is a folder that is moved. Its contents are not copied.
    pub(crate) is_moved_folder: bool,
}

impl StepRecorder {
    /// The recorder of a call. It keeps nothing unless the call's session keeps copies.
    pub(crate) fn for_call(services: &Services, call: Option<&AdmittedCall>) -> Self {
        let waiting = call.and_then(|call| {
            let session_id = &call.context().session_id;
            let folder = services.file_copies.as_ref()?.copy_folder(session_id)?;
            let history = UndoHistory::of_session(&folder, session_id)?;
            Some(RecorderState::Waiting { history, tool: call.tool().to_string() })
        });
        Self(Mutex::new(waiting.unwrap_or_default()))
    }

    /// Keeps what is at a path, unless this run has done so. The caller holds the folder's turn.
    ///
    /// # Errors
    ///
    /// The folder of the session cannot be written. Then this run keeps nothing, and later calls of
    /// this method do nothing.
    pub(crate) fn keep(&self, path: &ChangingPath<'_>) -> io::Result<()> {
        let mut state = lock_mutex(&self.0);
        if let RecorderState::Waiting { history, tool } = &*state {
            let created = OpenStep::create(history, tool);
            *state = RecorderState::Off;
            *state = RecorderState::Open(created?);
        }
        if let RecorderState::Open(step) = &mut *state {
            step.keep(path);
        }
        Ok(())
    }

    /// Notes what the run left, and gives up a step in which nothing has changed.
    pub(crate) fn finish(&self) {
        if let RecorderState::Open(step) = std::mem::take(&mut *lock_mutex(&self.0)) {
            step.finish();
        }
    }
}

impl OpenStep {
    fn create(history: &UndoHistory, tool: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&history.folder)?;
        let numbers = history.step_numbers();
        for number in numbers.iter().take((numbers.len() + 1).saturating_sub(STEPS_MAX)) {
            history.remove_files(*number);
        }
        let mut number = numbers.last().map_or(1, |last| last.saturating_add(1));
        let file = loop {
            match create_private(&history.step_file(number)) {
                // A call that runs at the same time has it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                created => break created?,
            }
        };
        file.lock()?;
        let mut step = Self {
            history: history.clone(),
            number,
            file,
            written_bytes: 0,
            copied_bytes: history.copied_bytes(),
            entries: Vec::new(),
            seen: HashSet::new(),
            is_broken: false,
        };
        step.write_line(&StepLine::Call { tool: tool.to_owned() });
        Ok(step)
    }

    fn keep(&mut self, path: &ChangingPath<'_>) {
        let key = (path.host.to_owned(), path.relative.to_owned());
        if self.is_broken || !self.seen.insert(key) {
            return;
        }
        if self.entries.len() >= PATHS_MAX {
            if self.seen.len() == PATHS_MAX + 1 {
                self.write_line(&StepLine::Partial);
            }
            return;
        }
        let before = self.copy_entry(path).unwrap_or_else(|error| {
            EntryBefore::Unkept(format!("it could not be copied: {error}"))
        });
        let Ok((device, inode)) = folder_identity(path.root) else { return };
        let entry = KeptEntry {
            root: path.host.to_owned(),
            device,
            inode,
            path: path.relative.to_owned(),
            guest: path.guest.clone(),
            before,
        };
        self.write_line(&StepLine::Before(entry.clone()));
        self.entries.push((Arc::clone(path.root), entry));
    }

    fn copy_entry(&mut self, path: &ChangingPath<'_>) -> io::Result<EntryBefore> {
        if path.is_moved_folder {
            return Ok(EntryBefore::MovedFolder);
        }
        let stat = match statat(path.folder, path.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(EntryBefore::Absent),
            Err(error) => return Err(error.into()),
        };
        let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(EntryBefore::Folder),
            FileType::RegularFile if bytes > COPY_BYTES_MAX => Ok(EntryBefore::Unkept(format!(
                "it had {bytes} bytes, and copies of at most {COPY_BYTES_MAX} are kept"
            ))),
            FileType::RegularFile if !self.make_room(bytes) => Ok(EntryBefore::Unkept(format!(
                "the copies of this call would have more than {SESSION_BYTES_MAX} bytes"
            ))),
            FileType::RegularFile => {
                let (copy, digest) = self.copy_file(open_file(path.folder, path.name)?)?;
                let (mode, owner) = (stat.st_mode & 0o777, (stat.st_uid, stat.st_gid));
                Ok(EntryBefore::File { copy, mode, owner, digest })
            }
            _ => Ok(EntryBefore::Unkept("it was not a regular file".to_owned())),
        }
    }

    /// Copies a file. Returns the number of the copy and the hash of the contents.
    fn copy_file(&mut self, source: File) -> io::Result<(u32, String)> {
        let mut bytes = Vec::new();
        source.take(COPY_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > COPY_BYTES_MAX {
            return Err(io::Error::other("it grew meanwhile"));
        }
        let copy = self.entries.len() as u32;
        let copy_path = self.history.copy_file(self.number, copy);
        let written = create_private(&copy_path).and_then(|mut file| file.write_all(&bytes));
        // A part of a copy is of no use, and a full disk needs the space.
        written.inspect_err(|_| drop(fs::remove_file(&copy_path)))?;
        self.copied_bytes += bytes.len() as u64;
        Ok((copy, blake3::hash(&bytes).to_string()))
    }

    /// Gives up the oldest steps until a copy fits. Returns false if this step alone is too large.
    fn make_room(&mut self, bytes: u64) -> bool {
        if self.copied_bytes.saturating_add(bytes) <= SESSION_BYTES_MAX {
            return true;
        }
        let mut older = self.history.step_numbers().into_iter();
        while self.copied_bytes.saturating_add(bytes) > SESSION_BYTES_MAX {
            match older.find(|number| *number != self.number) {
                Some(number) => self.history.remove_files(number),
                None => return false,
            }
            self.copied_bytes = self.history.copied_bytes();
        }
        true
    }

    fn finish(mut self) {
        let after: Vec<EntryState> =
            self.entries.iter().map(|(root, entry)| read_state(root, &entry.path)).collect();
        let is_changed =
            |((_, entry), after): (&(_, KeptEntry), &EntryState)| !entry.before.is_same(after);
        let is_changed = self.entries.iter().zip(&after).any(is_changed);
        self.write_line(&StepLine::After(after));
        if self.is_broken || !is_changed {
            self.history.remove_files(self.number);
        }
    }

    /// Adds a line. A step of which a line is missing would put back too much, so it is given up.
    fn write_line(&mut self, line: &StepLine) {
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.written_bytes += line.len() as u64;
            self.file.write_all(&line)
        });
        self.is_broken |= written.is_err() || self.written_bytes > STEP_BYTES_MAX;
    }
}

impl EntryBefore {
    /// Whether this is what was there before.
    pub(super) fn is_same(&self, now: &EntryState) -> bool {
        match (self, now) {
            (Self::Absent, EntryState::Absent) | (Self::Folder, EntryState::Folder) => true,
            (Self::File { digest: before, .. }, EntryState::File { digest }) => before == digest,
            _ => false,
        }
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
