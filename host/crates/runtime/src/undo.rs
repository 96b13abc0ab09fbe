//! Undo of changes that calls of a session made to files: which sessions keep copies, and until
//! when. The sandbox makes the copies and puts them back.

use std::{fs, path::Path};

use sallyport_contract::LOCAL_USER;
use sallyport_store::{HostStore, StoreError};

pub use sallyport_sandbox::undo::{
    UndoHistory, UndoStep,
    restore::{PathRestoration, RestoreAction},
};

use crate::{clock::now_ms, host::Host};

impl Host {
    /// Has the calls of a session keep copies of the files that they change. Returns the history of
    /// its changes, or `None` for an id that cannot be the name of a folder.
    pub fn keep_file_copies(&self, session_id: &str) -> Option<UndoHistory> {
        let file_copies = &self.host_services.file_copies;
        file_copies.add_session(session_id);
        UndoHistory::of_session(file_copies.folder(), session_id)
    }

    /// Removes copies of sessions that are gone.
    pub async fn remove_stale_file_copies(&self) {
        remove_stale_copies(self.store(), self.host_services.file_copies.folder()).await;
    }
}

/// Removes copies whose session is not stored, unless a program has it open without saving it.
/// `folder` is that of all sessions.
pub async fn remove_stale_copies(store: &HostStore, folder: &Path) {
    for session_id in session_folders(folder) {
        let found = store.sessions.get(LOCAL_USER, &session_id).await;
        let is_unsaved = matches!(found, Err(StoreError::SessionNotFound { .. }));
        // If the database cannot say it, the session may be open.
        if is_unsaved && matches!(store.presence.is_open(&session_id, now_ms()).await, Ok(false)) {
            remove_copies(folder, &session_id);
        }
    }
}

/// Removes the copies of one session.
pub fn remove_copies(folder: &Path, session_id: &str) {
    if let Some(history) = UndoHistory::of_session(folder, session_id) {
        history.remove();
    }
}

/// The sessions with copies.
fn session_folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
