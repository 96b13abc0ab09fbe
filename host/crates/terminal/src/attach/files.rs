//! Access to the files that a user attaches.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device or a socket.
    Other,
    /// No file, or one that may not be inspected.
    Nothing,
}

/// Source of attached files.
pub trait Files {
    /// Returns the kind of file at a path.
    fn find(&self, path: &Path) -> Found;

    /// Reads at most `bytes_max` bytes from the start of a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>>;
}

/// The files of this machine.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Base of relative paths.
    pub folder: PathBuf,
    /// The folder that `~/` refers to.
    pub home: Option<PathBuf>,
}

impl Disk {
    /// Expands `~`, and resolves a relative path against the folder.
    pub fn full(&self, path: &Path) -> PathBuf {
        match (&self.home, path.strip_prefix("~")) {
            (Some(home), Ok(rest)) => home.join(rest),
            _ => self.folder.join(path),
        }
    }
}

impl Files for Disk {
    fn find(&self, path: &Path) -> Found {
        match fs::metadata(self.full(path)) {
            Ok(metadata) if metadata.is_file() => Found::File,
            Ok(metadata) if metadata.is_dir() => Found::Folder,
            Ok(_) => Found::Other,
            Err(_) => Found::Nothing,
        }
    }

    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        sallyport_untrusted_file::open(&self.full(path))?
            .take(bytes_max)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
