//! Copies of files that calls are about to change.

use std::path::PathBuf;

/// Decides which sessions keep copies of the files that their calls change, so that the user can
/// put them back.
pub trait FileCopyFolders: Send + Sync {
    /// Returns the private folder that contains a folder of copies for each session, if this session
    /// keeps any.
    fn copy_folder(&self, session_id: &str) -> Option<PathBuf>;
}
