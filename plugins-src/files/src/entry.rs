//! Metadata of a path: its kind, size and time of change.

use std::fs::{self, Metadata};

use granted_folders::Inside;
use jiff::{Timestamp, Unit};
use sallyport_sdk::prelude::*;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// What is known about a path.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Stat {
    path: String,
    pub(crate) kind: Kind,
    /// Size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// When it was changed last (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

impl Kind {
    /// Returns the kind of a path from its metadata.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        match metadata.file_type() {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Returns the size of a regular file, in bytes; `None` for any other kind.
pub(crate) fn size(metadata: &Metadata) -> Option<u64> {
    metadata.is_file().then_some(metadata.len())
}

/// Returns the metadata of a path. Does not follow symbolic links.
pub(crate) fn stat(path: &Inside) -> Result<Stat, ToolError> {
    let metadata = fs::symlink_metadata(path.path()).map_err(|e| path.explain("looked at", &e))?;
    Ok(Stat {
        path: path.text().to_owned(),
        kind: Kind::of(&metadata),
        bytes: size(&metadata),
        modified: modified(&metadata),
    })
}

fn modified(metadata: &Metadata) -> Option<String> {
    let time = Timestamp::try_from(metadata.modified().ok()?).ok()?;
    Some(time.round(Unit::Second).ok()?.to_string())
}
