//! The names in a folder, read in batches: a folder may contain millions.
//!
//! Guests use UTF-8 names, but the names of a system may be any bytes. A name that is not UTF-8
//! cannot be passed to a guest, and a converted one would name nothing or something else. Such
//! names are left out, and the record of the call reports how many there were.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, statat};
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, ErrorCode};

use super::{
    convert::{descriptor_type, file_type_of, to_error_code},
    file_handle::FileHandle,
    mount::{GrantedMount, GuestMount, OpenFileSlot},
};
use crate::mutex::lock_mutex;

/// Names per batch, which is also the most that are in memory.
const NAMES_PER_BATCH: usize = 128;

/// A folder that is being listed.
pub(crate) struct FolderListing {
    mount: Arc<GuestMount>,
    relative_path: PathBuf,
    state: Mutex<FolderListingState>,
    _slot: OpenFileSlot,
}

struct FolderListingState {
    folder: Dir,
    names: VecDeque<DirectoryEntry>,
    /// Names left out so far.
    omitted_names: usize,
}

impl FolderListing {
    /// Starts listing a folder.
    pub(super) fn open(
        granted_mount: &GrantedMount,
        folder: &FileHandle,
    ) -> Result<Self, ErrorCode> {
        let slot = granted_mount.take_open_file_slot()?;
        let state = FolderListingState {
            folder: Dir::read_from(&folder.fd).map_err(to_error_code)?,
            names: VecDeque::new(),
            omitted_names: 0,
        };
        let (mount, relative_path) =
            (Arc::clone(&granted_mount.mount), folder.relative_path.clone());
        Ok(Self { mount, relative_path, state: Mutex::new(state), _slot: slot })
    }

    /// Returns the next name of the current batch.
    pub(super) fn next_buffered(&self, granted_mount: &GrantedMount) -> Option<DirectoryEntry> {
        let mut state = lock_mutex(&self.state);
        // The denied patterns may have changed since the name was read.
        let hides = |entry: &DirectoryEntry| {
            !granted_mount.is_visible(&self.relative_path.join(&entry.name))
        };
        while state.names.pop_front_if(|entry| hides(entry)).is_some() {}
        state.names.pop_front()
    }

    /// The current grant for the folder.
    pub(super) fn check_grant(&self) -> Result<GrantedMount, ErrorCode> {
        let granted_mount = self.mount.check_grant(&self.relative_path)?;
        granted_mount.check_access(&self.relative_path, sallyport_policy::FsAccess::Read)?;
        Ok(granted_mount)
    }

    /// Reads the next batch and returns its first name, or `None` at the end.
    pub(super) fn read_next(
        &self,
        granted_mount: &GrantedMount,
    ) -> Result<Option<DirectoryEntry>, ErrorCode> {
        let mut state = lock_mutex(&self.state);
        while state.names.len() < NAMES_PER_BATCH {
            let Some(entry) = state.folder.read() else {
                granted_mount.log_omitted_names(
                    &self.relative_path,
                    std::mem::take(&mut state.omitted_names),
                );
                break;
            };
            let entry = entry.map_err(to_error_code)?;
            match entry.file_name().to_str() {
                Ok(name) if self.is_visible(granted_mount, name) => {
                    let type_ = descriptor_type(entry_file_type(&state.folder, &entry));
                    state.names.push_back(DirectoryEntry { type_, name: name.to_owned() });
                }
                Ok(_) => {}
                Err(_) => state.omitted_names += 1,
            }
        }
        Ok(state.names.pop_front())
    }

    /// Whether the guest may see a name.
    fn is_visible(&self, granted_mount: &GrantedMount, name: &str) -> bool {
        !matches!(name, "." | "..") && granted_mount.is_visible(&self.relative_path.join(name))
    }
}

/// The type of an entry. Some file systems do not return it with the name, so it may need a lookup
/// of its own.
fn entry_file_type(folder: &Dir, entry: &DirEntry) -> FileType {
    match entry.file_type() {
        FileType::Unknown => {
            let stat =
                folder.fd().and_then(|fd| statat(fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW));
            stat.map_or(FileType::Unknown, |stat| file_type_of(&stat))
        }
        known => known,
    }
}
