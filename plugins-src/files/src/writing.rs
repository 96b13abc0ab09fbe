//! Writes text files.

use std::fs::OpenOptions;

use granted_folders::{Inside, Written};
use sallyport_sdk::prelude::*;

use crate::reading::TEXT_BYTES_MAX;

/// What to do when a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Create,
    Overwrite,
    Append,
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
    let mut file = mode.options().open(path.path()).map_err(|e| path.explain("written", &e))?;
    path.write(&mut file, text.as_bytes())
}
