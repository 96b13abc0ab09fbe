//! Writes files.

use std::{fs::OpenOptions, io::ErrorKind};

use data_encoding::BASE64;
use granted_folders::{Inside, Written};
use sallyport_sdk::prelude::*;

use crate::Encoding;

/// Maximum size of a write, in bytes.
pub(crate) const WRITE_BYTES_MAX: usize = 1024 * 1024;

/// Decodes content.
///
/// # Errors
///
/// The content is too long, or is invalid in its encoding.
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
        _ => path.explain("written", &error),
    })?;
    path.write(&mut file, bytes)
}
