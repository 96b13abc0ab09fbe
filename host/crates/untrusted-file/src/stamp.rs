//! The metadata of a file that change with its contents.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// A change this long ago has another time than a change now, on every file system in use: the
/// coarsest, FAT, counts in steps of two seconds.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The metadata of a file that show a change. A program can set the time of modification, but not
/// the time of the last change of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Device and number of the file.
    inode: (u64, u64),
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl From<&fs::Metadata> for FileStamp {
    fn from(info: &fs::Metadata) -> Self {
        Self {
            inode: (info.dev(), info.ino()),
            bytes: info.size(),
            modified: (info.mtime(), info.mtime_nsec()),
            changed: (info.ctime(), info.ctime_nsec()),
        }
    }
}

impl FileStamp {
    /// Reads the stamp of a file. Follows symbolic links.
    ///
    /// # Errors
    ///
    /// The metadata cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&fs::metadata(path)?))
    }

    /// The length of the file in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the last change is so long before `now` that the next one will have another stamp.
    /// Until then, contents that were read may be replaced without a trace.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let settled = u64::try_from(self.changed.0).map(Duration::from_secs).unwrap_or_default()
            + SETTLED_AFTER;
        now.duration_since(UNIX_EPOCH).is_ok_and(|now| now > settled)
    }
}
