//! Access to the files that a user attaches.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device or a socket.
    Other,
    /// No file, or one that may not be inspected.
    Missing,
}

/// Source of attached files.
pub trait FileSource {
    /// Returns the kind of file at a path.
    fn path_kind(&self, path: &Path) -> PathKind;

    /// Reads at most `bytes_max` bytes from the start of a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn read_file(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>>;
}

/// The files of this machine.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    /// Base of relative paths.
    pub folder: PathBuf,
    /// The folder that `~/` refers to.
    pub home: Option<PathBuf>,
}

impl LocalFiles {
    /// Expands `~`, and resolves a relative path against the folder.
    pub fn resolve_path(&self, path: &Path) -> PathBuf {
        match (&self.home, path.strip_prefix("~")) {
            (Some(home), Ok(rest)) => home.join(rest),
            _ => self.folder.join(path),
        }
    }
}

impl FileSource for LocalFiles {
    fn path_kind(&self, path: &Path) -> PathKind {
        match fs::metadata(self.resolve_path(path)) {
            Ok(metadata) if metadata.is_file() => PathKind::File,
            Ok(metadata) if metadata.is_dir() => PathKind::Folder,
            Ok(_) => PathKind::Other,
            Err(_) => PathKind::Missing,
        }
    }

    fn read_file(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        sallyport_untrusted_file::open_regular(&self.resolve_path(path))?
            .take(bytes_max)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
