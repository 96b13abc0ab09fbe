//! Writes files, makes folders and removes both.

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
    /// Writes to `file`, which was opened from this path.
    ///
    /// # Errors
    ///
    /// The file system refuses, for example for lack of space.
    pub fn write(&self, file: &mut File, bytes: &[u8]) -> Result<Written, ToolError> {
        let failed = |e| self.explain("written", &e);
        file.write_all(bytes).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Written { path: self.text().to_owned(), bytes })
    }

    /// Makes a folder and its missing parents.
    ///
    /// # Errors
    ///
    /// The path or one of its parents is a file.
    pub fn make_folder(&self) -> Result<Done, ToolError> {
        fs::create_dir_all(self.path()).map_err(|e| self.explain("made", &e))?;
        Ok(self.done("made"))
    }

    /// Removes a file, a symbolic link or an empty folder.
    ///
    /// # Errors
    ///
    /// The path is a granted folder, is a folder that is not empty, or does not exist.
    pub fn remove(&self) -> Result<Done, ToolError> {
        if self.is_removable_folder()? {
            fs::remove_dir(self.path())
        } else {
            fs::remove_file(self.path())
        }
        .map_err(|e| self.explain("removed", &e))?;
        Ok(self.done("removed"))
    }

    /// Removes a folder with its contents, or a file. Symbolic links are removed, not followed.
    ///
    /// # Errors
    ///
    /// The path is a granted folder or does not exist.
    pub fn remove_all(&self) -> Result<Done, ToolError> {
        if !self.is_removable_folder()? {
            return self.remove();
        }
        fs::remove_dir_all(self.path()).map_err(|e| self.explain("removed", &e))?;
        Ok(self.done("removed with everything in it"))
    }

    /// Returns whether the path to remove is a folder. Refuses a granted folder.
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
