//! New files that the user names for what the program records.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use super::exit::{CommandFailure, ExitStatus};

/// Creates a file, readable by this user only. It never overwrites a file.
///
/// # Errors
///
/// The file exists or cannot be created.
pub(super) fn create_private_file(path: &Path) -> Result<File, CommandFailure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|error| {
        let failure = CommandFailure::new(
            ExitStatus::Usage,
            format!("cannot create {}: {error}", path.display()),
        );
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                failure.with_hint("choose another name; no file is overwritten")
            }
            _ => failure,
        }
    })
}
