//! Scratch folders: temporary folders of one session, each with a name, shared by the plugins that
//! are granted it.
//!
//! A scratch folder is created when a call first uses it and removed with its session. It is
//! mounted like a granted folder, with a quota, and nothing in it is hidden. If a process is
//! killed, a later process removes its folders when it creates its own first one.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use super::{
    folder_usage::{FolderUsage, FolderUsageTable},
    temp_folder::ProcessTempFolder,
};
use crate::mutex::lock_mutex;

/// The existing scratch folders, by session and name.
#[derive(Debug, Default)]
pub(crate) struct ScratchFolders(Mutex<BTreeMap<String, BTreeMap<String, ScratchFolder>>>);

/// A scratch folder. It is removed when this is dropped, even if a guest still has it open.
#[derive(Debug)]
struct ScratchFolder {
    folder: ProcessTempFolder,
    usage: Arc<FolderUsage>,
}

impl ScratchFolders {
    /// Opens a scratch folder of a session, and creates it if needed.
    pub(crate) fn open_folder(
        &self,
        session_id: &str,
        name: &str,
        usage_table: &FolderUsageTable,
    ) -> io::Result<(OwnedFd, Arc<FolderUsage>)> {
        let mut sessions = lock_mutex(&self.0);
        let named = sessions.entry(session_id.to_owned()).or_default();
        if !named.contains_key(name) {
            named.insert(name.to_owned(), ScratchFolder::new(usage_table)?);
        }
        let scratch = &named[name];
        Ok((scratch.open()?, Arc::clone(&scratch.usage)))
    }

    /// Removes all scratch folders of a session. This may block.
    pub(crate) fn remove_session(&self, session_id: &str) {
        let ended = lock_mutex(&self.0).remove(session_id);
        drop(ended);
    }
}

impl ScratchFolder {
    fn new(usage_table: &FolderUsageTable) -> io::Result<Self> {
        let folder = ProcessTempFolder::create()?;
        let usage = usage_table.folder_usage(&folder.open()?.into())?;
        Ok(Self { folder, usage })
    }

    fn open(&self) -> io::Result<OwnedFd> {
        Ok(self.folder.open()?.into())
    }
}

impl Drop for ScratchFolder {
    /// Waits for its turn, so that no file is created in a folder that is being removed. Open files
    /// lose their names, and no new ones can be created.
    fn drop(&mut self) {
        let _write_guard = self.usage.lock_for_write();
        // If this fails, `ProcessTempFolder` tries again when it is dropped, and finally the next
        // process does.
        let _ = self.folder.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_scratch_is_one_folder_until_its_session_ends() {
        let (scratches, usage_table) = (ScratchFolders::default(), FolderUsageTable::default());
        let open = |session, name| scratches.open_folder(session, name, &usage_table).unwrap();
        let path = |session: &str, name: &str| {
            scratches.0.lock().unwrap()[session][name].folder.path().to_owned()
        };
        let ((_, one), (_, same)) = (open("s", "a"), open("s", "a"));
        assert!(Arc::ptr_eq(&one, &same), "its room is shared");
        let ((_, other), (_, others)) = (open("s", "b"), open("t", "a"));
        assert!(!Arc::ptr_eq(&one, &other) && !Arc::ptr_eq(&one, &others));
        let (gone, stays) = (path("s", "a"), path("t", "a"));
        fs::create_dir_all(gone.join("deep/er")).unwrap();
        scratches.remove_session("s");
        scratches.remove_session("s");
        assert!(!gone.exists() && stays.exists());
        drop(scratches);
        assert!(!stays.exists(), "nothing is left of a sandbox that is dropped");
    }
}
