//! Lists folders and reads text files.

use std::{
    fs::{DirEntry, File},
    io::Read,
};

use granted_folders::{Entries, Inside};
use sallyport_sdk::{folders, prelude::*};

use crate::entry::{self, Kind};

/// Maximum size of a file that is read, in bytes: more text than a model accepts at a time.
pub(crate) const TEXT_BYTES_MAX: u64 = 1024 * 1024;

/// What is in a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// True when there are more entries than are listed.
    pub(crate) truncated: bool,
}

/// A file or a folder.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Name within the folder; the whole path of a granted folder.
    pub(crate) name: String,
    kind: Kind,
    /// Size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// A text file.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Text {
    path: String,
    pub(crate) text: String,
    bytes: usize,
}

/// Lists the granted folders.
pub(crate) fn granted() -> Result<Listing, ToolError> {
    let entry = |name| Entry { name, kind: Kind::Folder, bytes: None };
    let entries: Vec<_> = folders::granted().into_iter().map(entry).collect();
    if entries.is_empty() {
        return Err(ToolError::Denied("no folder is granted to this plugin".to_owned()));
    }
    Ok(Listing { entries, truncated: false })
}

/// Lists a folder, sorted by name.
pub(crate) fn folder(path: &Inside) -> Result<Listing, ToolError> {
    let Entries { listed, truncated } = path.entries()?;
    Ok(Listing { entries: listed.into_iter().map(describe).collect(), truncated })
}

/// Describes an entry. A file that has vanished or cannot be inspected is still listed by name.
fn describe(entry: DirEntry) -> Entry {
    let name = entry.file_name().to_string_lossy().into_owned();
    match entry.metadata() {
        Ok(metadata) => Entry { name, kind: Kind::of(&metadata), bytes: entry::size(&metadata) },
        Err(_) => Entry { name, kind: Kind::Other, bytes: None },
    }
}

/// Reads a whole text file.
pub(crate) fn text(path: &Inside) -> Result<Text, ToolError> {
    let failed = |e| path.explain("read", &e);
    let file = File::open(path.path()).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(path.invalid("is a folder; list it instead"));
    }
    // Read without checking the size first: kernel files report a size of zero.
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(ToolError::Failed(format!(
            "{} holds {} bytes; at most {TEXT_BYTES_MAX} can be read",
            path.text(),
            metadata.len()
        )));
    }
    let (path, bytes, text) = (path.text().to_owned(), bytes.len(), String::from_utf8(bytes));
    match text {
        Ok(text) if !text.contains('\0') => Ok(Text { path, text, bytes }),
        _ => Err(ToolError::Failed(format!("{path} is not a text file (UTF-8)"))),
    }
}
