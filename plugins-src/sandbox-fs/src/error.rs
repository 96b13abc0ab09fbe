//! Errors of the file system, in words that a model can act on.

use std::io::{self, ErrorKind};

use sallyport_sdk::ToolError;

use crate::paths::Inside;

/// Explains why a path could not be used. `action` completes "… could not be".
pub(crate) fn explain(path: &Inside, action: &str, error: &io::Error) -> ToolError {
    let path = path.text();
    match kind(error) {
        ErrorKind::NotFound => ToolError::NotFound(format!("{path} does not exist")),
        ErrorKind::PermissionDenied => ToolError::Denied(format!("{path} may not be {action}")),
        ErrorKind::AlreadyExists => invalid(path, "exists already"),
        ErrorKind::NotADirectory => invalid(path, "is not in a folder, or is no folder itself"),
        ErrorKind::IsADirectory => invalid(path, "is a folder"),
        ErrorKind::DirectoryNotEmpty => invalid(path, "is not empty; use `recursive` to remove it"),
        ErrorKind::InvalidFilename => invalid(path, "is not a name that a file can have"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ToolError::Failed(format!(
                "{path} could not be {action}: there is no space left; remove what is not needed"
            ))
        }
        _ => ToolError::Failed(format!("{path} could not be {action}: {error}")),
    }
}

/// Returns the error of an argument that does not fit what is there.
pub(crate) fn invalid(path: &str, what: &str) -> ToolError {
    ToolError::InvalidArguments(format!("{path} {what}"))
}

/// The standard library leaves these errors of WASI without a kind.
fn kind(error: &io::Error) -> ErrorKind {
    const QUOTA: i32 = 19;
    const FILE_TOO_LARGE: i32 = 22;
    const NAME_TOO_LONG: i32 = 37;
    const NO_SPACE: i32 = 51;
    const NOT_EMPTY: i32 = 55;
    const NOT_CAPABLE: i32 = 76;
    match error.raw_os_error() {
        Some(code) if cfg!(target_os = "wasi") => match code {
            QUOTA | FILE_TOO_LARGE | NO_SPACE => ErrorKind::StorageFull,
            NAME_TOO_LONG => ErrorKind::InvalidFilename,
            NOT_EMPTY => ErrorKind::DirectoryNotEmpty,
            NOT_CAPABLE => ErrorKind::PermissionDenied,
            _ => error.kind(),
        },
        _ => error.kind(),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing;

    use super::*;

    #[test]
    fn every_failure_has_its_kind() {
        testing::folders(["/work"]);
        let path = crate::paths::resolve("x").unwrap();
        let no_space =
            "/work/x could not be read: there is no space left; remove what is not needed";
        for (kind, want, message) in [
            (ErrorKind::NotFound, "not-found", "/work/x does not exist"),
            (ErrorKind::PermissionDenied, "denied", "/work/x may not be read"),
            (ErrorKind::IsADirectory, "invalid-arguments", "/work/x is a folder"),
            (ErrorKind::QuotaExceeded, "failed", no_space),
            (ErrorKind::Other, "failed", "/work/x could not be read: other error"),
        ] {
            let error = explain(&path, "read", &kind.into());
            assert_eq!((error.kind(), error.message()), (want, message));
        }
    }
}
