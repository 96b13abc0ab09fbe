//! Translates file system errors into messages that a model can act on.

use std::io::{self, ErrorKind};

use sallyport_sdk::ToolError;

use crate::Inside;

/// A plugin's wording for its folders.
#[derive(Debug)]
pub struct Wording {
    /// Names the top folder: completes "/notes is … and cannot be removed".
    pub top: &'static str,
    /// Explains an error that has a specific meaning in these folders. Receives the path, the
    /// action that "could not be" done, and the kind of the error. `None` leaves the error to
    /// [`Inside::explain`].
    pub explain: fn(&str, &str, ErrorKind) -> Option<ToolError>,
}

impl Inside {
    /// Explains why the path could not be used. `action` completes "… could not be".
    #[must_use]
    pub fn explain(&self, action: &str, error: &io::Error) -> ToolError {
        let (path, kind) = (self.text(), kind(error));
        if let Some(particular) = (self.wording.explain)(path, action, kind) {
            return particular;
        }
        match kind {
            ErrorKind::NotFound => ToolError::NotFound(format!("{path} does not exist")),
            ErrorKind::AlreadyExists => self.invalid("exists already"),
            ErrorKind::NotADirectory => {
                self.invalid("is not in a folder, or is not a folder itself")
            }
            ErrorKind::IsADirectory => self.invalid("is a folder"),
            ErrorKind::DirectoryNotEmpty => {
                self.invalid("is not empty; use `recursive` to remove it")
            }
            ErrorKind::InvalidFilename => self.invalid("is not a name that a file can have"),
            _ => ToolError::Failed(format!("{path} could not be {action}: {error}")),
        }
    }

    /// Returns the error for an invalid argument. `what` follows the path.
    #[must_use]
    pub fn invalid(&self, what: &str) -> ToolError {
        ToolError::InvalidArguments(format!("{} {what}", self.text()))
    }
}

/// Returns the kind of an error. The standard library does not map these WASI error numbers.
fn kind(error: &io::Error) -> ErrorKind {
    const QUOTA: i32 = 19;
    const FILE_TOO_LARGE: i32 = 22;
    const NAME_TOO_LONG: i32 = 37;
    const NO_SPACE: i32 = 51;
    const NOT_EMPTY: i32 = 55;
    const READ_ONLY: i32 = 69;
    const NOT_CAPABLE: i32 = 76;
    match error.raw_os_error() {
        Some(code) if cfg!(target_os = "wasi") => match code {
            QUOTA | FILE_TOO_LARGE | NO_SPACE => ErrorKind::StorageFull,
            NAME_TOO_LONG => ErrorKind::InvalidFilename,
            NOT_EMPTY => ErrorKind::DirectoryNotEmpty,
            READ_ONLY => ErrorKind::ReadOnlyFilesystem,
            NOT_CAPABLE => ErrorKind::PermissionDenied,
            _ => error.kind(),
        },
        _ => error.kind(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::WORDING;

    #[test]
    fn every_failure_has_its_kind() {
        let path = Inside::find("/notes/x", &["/notes".to_owned()], &WORDING).unwrap();
        let invalid = "invalid-arguments";
        for (kind, want, message) in [
            (ErrorKind::NotFound, "not-found", "/notes/x does not exist"),
            (ErrorKind::PermissionDenied, "denied", "/notes/x is locked and cannot be read"),
            (ErrorKind::AlreadyExists, invalid, "/notes/x exists already"),
            (
                ErrorKind::NotADirectory,
                invalid,
                "/notes/x is not in a folder, or is not a folder itself",
            ),
            (ErrorKind::IsADirectory, invalid, "/notes/x is a folder"),
            (
                ErrorKind::DirectoryNotEmpty,
                invalid,
                "/notes/x is not empty; use `recursive` to remove it",
            ),
            (ErrorKind::InvalidFilename, invalid, "/notes/x is not a name that a file can have"),
            (ErrorKind::Other, "failed", "/notes/x could not be read: other error"),
        ] {
            let error = path.explain("read", &kind.into());
            assert_eq!((error.kind(), error.message()), (want, message));
        }
    }
}
