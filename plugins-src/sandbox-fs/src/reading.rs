//! Lists folders and reads files in parts.

use std::{
    fs::{DirEntry, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    str::Utf8Error,
};

use data_encoding::BASE64;
use granted_folders::{Entries, Inside};
use sallyport_sdk::prelude::*;

use crate::Encoding;

/// Default size of a read, in bytes. A model cannot read more with care.
pub(crate) const READ_STANDARD_BYTES: u64 = 64 * 1024;

/// Maximum size of a read, in bytes. In base64 it still fits into the result of a call.
pub(crate) const READ_BYTES_MAX: u64 = 256 * 1024;

/// Maximum number of bytes in a character after the first one.
const CONTINUATION_BYTES_MAX: usize = 3;

/// A part of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    offset: u64,
    bytes_max: u64,
}

/// What is in a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    path: String,
    entries: Vec<Entry>,
    /// True when there are more entries than are listed.
    truncated: bool,
}

/// A file or a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Name within the folder.
    name: String,
    kind: Kind,
    /// Size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// A file, or a part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Content {
    path: String,
    content: String,
    encoding: Encoding,
    /// Size of the whole file.
    bytes: u64,
    /// Where to go on reading; absent when this is the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

impl Range {
    /// Creates a range from a model's arguments.
    ///
    /// # Errors
    ///
    /// The limit is 0 or too large.
    pub(crate) fn new(offset: Option<u64>, limit: Option<u64>) -> Result<Self, ToolError> {
        let bytes_max = limit.unwrap_or(READ_STANDARD_BYTES);
        if !(1..=READ_BYTES_MAX).contains(&bytes_max) {
            return Err(ToolError::InvalidArguments(format!(
                "argument `limit`: from 1 to {READ_BYTES_MAX} bytes are read at once"
            )));
        }
        Ok(Self { offset: offset.unwrap_or(0), bytes_max })
    }
}

impl Kind {
    fn of(metadata: &Metadata) -> Self {
        match metadata.file_type() {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Lists a folder, sorted by name.
pub(crate) fn folder(path: &Inside) -> Result<Listing, ToolError> {
    let Entries { listed, truncated } = path.entries()?;
    let entries = listed.into_iter().map(describe).collect();
    Ok(Listing { path: path.text().to_owned(), entries, truncated })
}

/// Describes an entry. A file that has vanished is still listed by name.
fn describe(entry: DirEntry) -> Entry {
    let name = entry.file_name().to_string_lossy().into_owned();
    match entry.metadata() {
        Ok(metadata) => {
            let bytes = metadata.is_file().then_some(metadata.len());
            Entry { name, kind: Kind::of(&metadata), bytes }
        }
        Err(_) => Entry { name, kind: Kind::Other, bytes: None },
    }
}

/// Reads a file or a part of it.
pub(crate) fn file(path: &Inside, encoding: Encoding, range: Range) -> Result<Content, ToolError> {
    let failed = |e| path.explain("read", &e);
    let mut file = File::open(path.path()).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(path.invalid("is a folder; list it instead"));
    }
    let bytes = part(&mut file, range).map_err(failed)?;
    let is_end = range.offset.saturating_add(bytes.len() as u64) >= metadata.len();
    let (content, taken) = match encoding {
        Encoding::Base64 => (BASE64.encode(&bytes), bytes.len()),
        Encoding::Utf8 => text(path, &bytes, is_end)?,
    };
    let end = range.offset.saturating_add(taken as u64);
    Ok(Content {
        path: path.text().to_owned(),
        content,
        encoding,
        bytes: metadata.len(),
        next: (end < metadata.len()).then_some(end),
    })
}

fn part(file: &mut File, range: Range) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(range.offset))?;
    let mut bytes = Vec::new();
    file.take(range.bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the text and its size in bytes. A character that the range cuts is left for the next
/// part.
fn text(path: &Inside, bytes: &[u8], is_end: bool) -> Result<(String, usize), ToolError> {
    let whole = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if is_cut(bytes, &error, is_end) => {
            str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err(not_text(path)),
    };
    if whole.contains('\0') || (whole.is_empty() && !bytes.is_empty()) {
        return Err(not_text(path));
    }
    Ok((whole.to_owned(), whole.len()))
}

fn is_cut(bytes: &[u8], error: &Utf8Error, is_end: bool) -> bool {
    let rest = bytes.len() - error.valid_up_to();
    !is_end && error.error_len().is_none() && rest <= CONTINUATION_BYTES_MAX
}

fn not_text(path: &Inside) -> ToolError {
    ToolError::Failed(format!(
        "{} is not text (UTF-8) at this place; use the encoding \"base64\"",
        path.text()
    ))
}
