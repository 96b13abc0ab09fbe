//! Writing text, making folders, removing either.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
};

use sallyport_sdk::prelude::*;

use crate::{error::explain, paths::Inside, reading::TEXT_BYTES_MAX};

/// What to do when a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Create,
    Overwrite,
    Append,
}

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

impl Mode {
    fn options(self) -> OpenOptions {
        let mut options = OpenOptions::new();
        match self {
            Self::Create => options.write(true).create_new(true),
            Self::Overwrite => options.write(true).create(true).truncate(true),
            Self::Append => options.append(true).create(true),
        };
        options
    }
}

/// Writes a text file.
pub(crate) fn text(path: &Inside, text: &str, mode: Mode) -> Result<Written, ToolError> {
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(ToolError::InvalidArguments(format!(
            "argument `text`: it has {} bytes, at most {TEXT_BYTES_MAX} are written at once",
            text.len()
        )));
    }
    let failed = |e| explain(path, "written", &e);
    let mut file = mode.options().open(path.path()).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
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
    refuse_granted_folder(path)?;
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
    refuse_granted_folder(path)?;
    let failed = |e| explain(path, "removed", &e);
    if !fs::symlink_metadata(path.path()).map_err(failed)?.is_dir() {
        return remove(path);
    }
    fs::remove_dir_all(path.path()).map_err(failed)?;
    Ok(done(path, "removed with everything in it"))
}

fn refuse_granted_folder(path: &Inside) -> Result<(), ToolError> {
    if path.is_granted_folder() {
        let message = format!("{} is a granted folder and cannot be removed", path.text());
        return Err(ToolError::InvalidArguments(message));
    }
    Ok(())
}

fn done(path: &Inside, done: &str) -> Done {
    Done { path: path.text().to_owned(), done: done.to_owned() }
}
