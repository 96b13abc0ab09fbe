//! Lists folders.

use std::fs::{self, DirEntry};

use sallyport_sdk::ToolError;

use crate::Inside;

/// Maximum number of entries in a listing. It covers most folders, and a model can still read it.
pub const ENTRIES_MAX: usize = 1000;

/// The files and folders in a folder.
#[derive(Debug)]
pub struct Entries {
    /// At most [`ENTRIES_MAX`] entries, sorted by name.
    pub listed: Vec<DirEntry>,
    /// Whether there are more entries.
    pub truncated: bool,
}

impl Inside {
    /// Lists a folder, sorted by name.
    ///
    /// # Errors
    ///
    /// The path is not a folder, or may not be listed.
    pub fn entries(&self) -> Result<Entries, ToolError> {
        let failed = |e| self.explain("listed", &e);
        let entries = fs::read_dir(self.path()).map_err(failed)?;
        // One more than is listed, to detect whether there are more.
        let entries = entries.take(ENTRIES_MAX + 1);
        let mut listed = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let truncated = listed.len() > ENTRIES_MAX;
        listed.truncate(ENTRIES_MAX);
        listed.sort_by_cached_key(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(Entries { listed, truncated })
    }
}
