//! Lists, reads, writes and removes files in the temporary file system of a session.
//!
//! Programs of the session use the same file system: a model writes a file, runs a program on it,
//! and reads the result. The host enforces the boundary. The checks in this plugin only give the
//! model better error messages.

mod error;
mod paths;
mod reading;
mod writing;

use granted_folders::{Done, Written};
use sallyport_sdk::prelude::*;

use reading::{Content, Listing, Range};

/// A folder, or nothing for the file system itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Path of a folder, such as "/sandbox/data" or "data". The whole file system when absent.
    path: Option<String>,
}

/// A file, and how much of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// Path of a file, such as "/sandbox/data.csv" or "data.csv".
    path: String,
    /// How its bytes are written in the answer: "utf-8" (the default, for text) or "base64".
    encoding: Option<Encoding>,
    /// Where to begin, in bytes. 0 when absent.
    offset: Option<u64>,
    /// How many bytes to read. 65536 when absent, and at most 262144.
    limit: Option<u64>,
}

/// A file and what shall be in it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    /// Path of a file, such as "/sandbox/data.csv" or "data.csv". Its folder has to exist.
    path: String,
    /// What to write.
    content: String,
    /// What `content` is: "utf-8" (the default, for text) or "base64".
    encoding: Option<Encoding>,
    /// True to add to a file that exists. Otherwise its old content is lost.
    append: Option<bool>,
}

/// One path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePath {
    /// Path such as "/sandbox/data" or "data".
    path: String,
}

/// A file or a folder to remove.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// Path such as "/sandbox/old.csv" or "old.csv".
    path: String,
    /// True to remove a folder with everything in it.
    recursive: Option<bool>,
}

/// How bytes are written as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
enum Encoding {
    /// Text.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Any bytes.
    #[serde(rename = "base64")]
    Base64,
}

/// Lists the files and folders in a folder of the session's file system.
#[tool(read_only, open_world = false)]
fn list(args: List) -> Result<Listing, ToolError> {
    reading::folder(&paths::resolve(args.path.as_deref().unwrap_or("."))?)
}

/// Reads a file of the session's file system, or a part of it.
#[tool(read_only, open_world = false)]
fn read(args: Read) -> Result<Content, ToolError> {
    let range = Range::new(args.offset, args.limit)?;
    reading::file(&paths::resolve(&args.path)?, args.encoding.unwrap_or_default(), range)
}

/// Writes a file of the session's file system: creates it, replaces what is in it, or adds to it.
#[tool(destructive, open_world = false)]
fn write(args: Write) -> Result<Written, ToolError> {
    let bytes = writing::decoded(args.content, args.encoding.unwrap_or_default())?;
    writing::file(&paths::resolve(&args.path)?, &bytes, args.append.unwrap_or(false))
}

/// Makes a folder in the session's file system, and the folders above it when they are missing.
#[tool(destructive = false, idempotent, open_world = false)]
fn mkdir(args: OnePath) -> Result<Done, ToolError> {
    paths::resolve(&args.path)?.make_folder()
}

/// Removes a file or an empty folder of the session's file system; with `recursive`, a folder with
/// everything in it.
#[tool(destructive, open_world = false)]
fn remove(args: Remove) -> Result<Done, ToolError> {
    let path = paths::resolve(&args.path)?;
    if args.recursive.unwrap_or(false) { path.remove_all() } else { path.remove() }
}

sallyport_sdk::export_plugin!(tools = [list, read, write, mkdir, remove]);

#[cfg(test)]
mod tests;
