//! Writes into the user's policy file. Only the person's own word leads here: an answer "always", or
//! a command of the operator.
//!
//! The text is edited, not written anew: comments and order stay. The file is replaced whole, so a
//! crash leaves the old one or the new one.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sallyport_policy::{RuleText, edit};
use sallyport_untrusted_file as untrusted_file;

/// Longest policy that is edited; the parser refuses less.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

use crate::whole_file;

/// Why a policy file was not written.
#[derive(Debug, thiserror::Error)]
pub enum RulebookError {
    /// The file cannot be read or replaced.
    #[error("{0}")]
    File(#[from] io::Error),
    /// Its text cannot be edited.
    #[error("{0}")]
    Text(#[from] edit::EditError),
}

/// Adds a rule, unless it stands there already.
///
/// # Errors
///
/// The file cannot be read, edited or replaced.
pub fn add_rule(path: &Path, rule: &RuleText) -> Result<(), RulebookError> {
    let text = read(path)?;
    let changed = edit::add_rule(&text, rule)?;
    if changed != text {
        write(path, &changed)?;
    }
    Ok(())
}

/// Reads the file; one that is not there yet is empty.
///
/// # Errors
///
/// It is there and cannot be read.
pub fn read(path: &Path) -> io::Result<String> {
    match untrusted_file::read_text(path, FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        result => result,
    }
}

/// Replaces the file whole. A link is followed, so that a policy kept elsewhere stays there; the
/// permissions stay as they were.
///
/// # Errors
///
/// The folder cannot be made or written to.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode =
        fs::metadata(&path).map_or(whole_file::PRIVATE_MODE, |info| info.permissions().mode());
    whole_file::replace(&path, text.as_bytes(), mode)
}
