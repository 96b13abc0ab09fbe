//! Writing files, making folders, removing either.

use std::{
    fs::{self, File},
    io::Write as _,
};

use sallyport_sdk::prelude::*;

use crate::Inside;

/// A file as it is after writing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    path: String,
    /// Size of the whole file now.
    bytes: u64,
}

/// What has been done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    path: String,
    done: String,
}

impl Inside {
    /// Writes to the file of this path, which was opened for it.
    ///
    /// # Errors
    ///
    /// Whatever the file system objects to, such as that there is no space left.
    pub fn write(&self, file: &mut File, bytes: &[u8]) -> Result<Written, ToolError> {
        let failed = |e| self.explain("written", &e);
        file.write_all(bytes).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Written { path: self.text().to_owned(), bytes })
    }

    /// Makes a folder and those above it.
    ///
    /// # Errors
    ///
    /// A path at which, or above which, there is a file.
    pub fn make_folder(&self) -> Result<Done, ToolError> {
        fs::create_dir_all(self.path()).map_err(|e| self.explain("made", &e))?;
        Ok(self.done("made"))
    }

    /// Removes a file, a link or an empty folder.
    ///
    /// # Errors
    ///
    /// A granted folder, one that is not empty, or nothing there.
    pub fn remove(&self) -> Result<Done, ToolError> {
        if self.is_removable_folder()? {
            fs::remove_dir(self.path())
        } else {
            fs::remove_file(self.path())
        }
        .map_err(|e| self.explain("removed", &e))?;
        Ok(self.done("removed"))
    }

    /// Removes a folder with everything in it, or a file. Links are removed, what they point to
    /// stays.
    ///
    /// # Errors
    ///
    /// A granted folder, or nothing there.
    pub fn remove_all(&self) -> Result<Done, ToolError> {
        if !self.is_removable_folder()? {
            return self.remove();
        }
        fs::remove_dir_all(self.path()).map_err(|e| self.explain("removed", &e))?;
        Ok(self.done("removed with everything in it"))
    }

    /// Tells whether what shall be removed is a folder. A granted folder is refused.
    fn is_removable_folder(&self) -> Result<bool, ToolError> {
        if self.is_top() {
            return Err(self.invalid(&format!("is {} and cannot be removed", self.wording.top)));
        }
        let metadata = fs::symlink_metadata(self.path());
        Ok(metadata.map_err(|e| self.explain("removed", &e))?.is_dir())
    }

    fn done(&self, done: &str) -> Done {
        Done { path: self.text().to_owned(), done: done.to_owned() }
    }
}
