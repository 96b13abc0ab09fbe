//! The files in the folder of a script.

use std::{fs::File, io, path::Path};

use crate::error::ScriptError;

/// Opens a regular file. Does not block on any other kind of file.
pub(crate) fn open_regular_file(path: &Path) -> Result<File, ScriptError> {
    sallyport_untrusted_file::open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => ScriptError::NotAFile { path: path.to_owned() },
        _ => ScriptError::unreadable(path, &error),
    })
}
