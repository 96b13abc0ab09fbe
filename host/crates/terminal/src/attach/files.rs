//! Where attached files come from.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device, a socket.
    Other,
    /// Nothing, or nothing that may be looked at.
    Nothing,
}

/// Where attached files come from.
pub trait Files {
    /// What stands at a path.
    fn find(&self, path: &Path) -> Found;

    /// Reads a file up to a number of bytes; a longer one is cut there.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>>;
}

/// The files of this machine.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The folder that relative paths begin in.
    pub folder: PathBuf,
    /// The folder that `~/` stands for.
    pub home: Option<PathBuf>,
}

impl Disk {
    /// The path with its beginning spelt out.
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
