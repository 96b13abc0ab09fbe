//! The sessions whose calls keep copies of the files that they change.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use sallyport_contract::services::FileCopyFolders;

/// The sessions of this program that can undo changes of files. Others keep nothing, because nobody
/// would remove it.
#[derive(Debug)]
pub struct FileCopies {
    folder: PathBuf,
    sessions: Mutex<BTreeSet<String>>,
}

impl FileCopies {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, sessions: Mutex::default() }
    }

    /// The folder with the copies of all sessions.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps copies for a session from now on.
    pub(crate) fn add_session(&self, session_id: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(session_id.to_owned());
    }
}

impl FileCopyFolders for FileCopies {
    fn copy_folder(&self, session_id: &str) -> Option<PathBuf> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.contains(session_id).then(|| self.folder.clone())
    }
}
