//! Lists, reads, writes and removes files in the folders that the policy grants.
//!
//! The host enforces the boundary: this code cannot reach anything outside a granted folder. Its
//! own checks only give the model better error messages.

mod entry;
mod error;
mod paths;
mod reading;
mod writing;

use granted_folders::{Done, Written};
use sallyport_sdk::prelude::*;

use entry::Stat;
use reading::{Listing, Text};
use writing::Mode;

/// A folder, or nothing for the granted folders themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Path of a folder, such as "/notes". The granted folders are listed when absent.
    path: Option<String>,
}

/// One path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePath {
    /// Path inside a granted folder, such as "/notes/todo.txt".
    path: String,
}

/// A file and its text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    /// Path inside a granted folder, such as "/notes/todo.txt". Its folder has to exist.
    path: String,
    /// The text to write.
    text: String,
    /// What to do when the file exists: "create" (fail, the default), "overwrite" or "append".
    mode: Option<Mode>,
}

/// A file or a folder to remove.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// Path inside a granted folder, such as "/notes/old.txt".
    path: String,
    /// True to remove a folder with everything in it.
    recursive: Option<bool>,
}

/// Lists the files and folders in a folder. Without a path it lists the folders that are granted;
/// every other path lies inside one of those.
#[tool(read_only, open_world = false)]
fn list(args: List) -> Result<Listing, ToolError> {
    match args.path.as_deref() {
        None | Some("" | "/" | ".") => reading::granted(),
        Some(path) => reading::folder(&paths::resolve(path)?),
    }
}

/// Reads a text file.
#[tool(read_only, open_world = false)]
fn read(args: OnePath) -> Result<Text, ToolError> {
    reading::text(&paths::resolve(&args.path)?)
}

/// Writes a text file: creates it, overwrites it or appends to it.
#[tool(destructive, open_world = false)]
fn write(args: Write) -> Result<Written, ToolError> {
    writing::text(&paths::resolve(&args.path)?, &args.text, args.mode.unwrap_or(Mode::Create))
}

/// Makes a folder, and the folders above it when they are missing.
#[tool(destructive = false, idempotent, open_world = false)]
fn mkdir(args: OnePath) -> Result<Done, ToolError> {
    paths::resolve(&args.path)?.make_folder()
}

/// Removes a file or an empty folder; with `recursive`, a folder with everything in it.
#[tool(destructive, open_world = false)]
fn remove(args: Remove) -> Result<Done, ToolError> {
    let path = paths::resolve(&args.path)?;
    if args.recursive.unwrap_or(false) { path.remove_all() } else { path.remove() }
}

/// Tells what a path is: a file or a folder, how large, and when it was changed.
#[tool(read_only, open_world = false)]
fn stat(args: OnePath) -> Result<Stat, ToolError> {
    entry::stat(&paths::resolve(&args.path)?)
}

sallyport_sdk::export_plugin!(tools = [list, read, write, mkdir, remove, stat]);

#[cfg(test)]
mod tests;
