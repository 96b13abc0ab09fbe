//! Writing files, making folders, removing either.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
};

use data_encoding::BASE64;
use sallyport_sdk::prelude::*;

use crate::{
    Encoding,
    error::{explain, invalid},
    paths::Inside,
};

/// Most that is written at once: the arguments of a call are no place for more.
pub(crate) const WRITE_BYTES_MAX: usize = 1024 * 1024;

/// A file as it is after writing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Written {
    path: String,
    /// Size of the whole file now.
    bytes: u64,
}

/// What has been done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    path: String,
    done: String,
}

/// Returns the bytes that a content stands for.
///
/// # Errors
///
/// A content that is too long, or is not in its encoding.
pub(crate) fn decoded(content: String, encoding: Encoding) -> Result<Vec<u8>, ToolError> {
    let bytes = match encoding {
        Encoding::Utf8 => content.into_bytes(),
        Encoding::Base64 => BASE64.decode(content.as_bytes()).map_err(|error| {
            ToolError::InvalidArguments(format!("argument `content`: it is not base64: {error}"))
        })?,
    };
    if bytes.len() > WRITE_BYTES_MAX {
        return Err(ToolError::InvalidArguments(format!(
            "argument `content`: it has {} bytes, at most {WRITE_BYTES_MAX} are written at once; \
             write the rest with `append`",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// Writes a file.
pub(crate) fn file(path: &Inside, bytes: &[u8], append: bool) -> Result<Written, ToolError> {
    let mut options = OpenOptions::new();
    options.create(true).append(append).write(true).truncate(!append);
    let mut file = options.open(path.path()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ToolError::NotFound(format!(
            "the folder of {} does not exist; make it first",
            path.text()
        )),
        _ => explain(path, "written", &error),
    })?;
    let failed = |e| explain(path, "written", &e);
    file.write_all(bytes).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok(Written { path: path.text().to_owned(), bytes })
}

/// Makes a folder and those above it.
pub(crate) fn folder(path: &Inside) -> Result<Done, ToolError> {
    fs::create_dir_all(path.path()).map_err(|e| explain(path, "made", &e))?;
    Ok(done(path, "made"))
}

/// Removes a file, a link or an empty folder.
pub(crate) fn remove(path: &Inside) -> Result<Done, ToolError> {
    refuse_root(path)?;
    let failed = |e| explain(path, "removed", &e);
    if fs::symlink_metadata(path.path()).map_err(failed)?.is_dir() {
        fs::remove_dir(path.path()).map_err(failed)?;
    } else {
        fs::remove_file(path.path()).map_err(failed)?;
    }
    Ok(done(path, "removed"))
}

/// Removes a folder with everything in it. Links are removed, what they point to stays.
pub(crate) fn remove_all(path: &Inside) -> Result<Done, ToolError> {
    refuse_root(path)?;
    let failed = |e| explain(path, "removed", &e);
    if !fs::symlink_metadata(path.path()).map_err(failed)?.is_dir() {
        return remove(path);
    }
    fs::remove_dir_all(path.path()).map_err(failed)?;
    Ok(done(path, "removed with everything in it"))
}

fn refuse_root(path: &Inside) -> Result<(), ToolError> {
    if path.is_root() {
        return Err(invalid(path.text(), "is the session's file system and cannot be removed"));
    }
    Ok(())
}

fn done(path: &Inside, done: &str) -> Done {
    Done { path: path.text().to_owned(), done: done.to_owned() }
}
