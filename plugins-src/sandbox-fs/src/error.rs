//! Error messages specific to the session's file system, written for a model.

use std::io::ErrorKind;

use granted_folders::Wording;
use sallyport_sdk::ToolError;

/// The wording for the session's file system.
pub(crate) static WORDING: Wording = Wording { top: "the session's file system", explain };

fn explain(path: &str, action: &str, kind: ErrorKind) -> Option<ToolError> {
    match kind {
        ErrorKind::PermissionDenied => {
            Some(ToolError::Denied(format!("{path} may not be {action}")))
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Some(ToolError::Failed(format!(
                "{path} could not be {action}: there is no space left; remove what is not needed"
            )))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing;

    use super::*;

    #[test]
    fn every_failure_has_its_kind() {
        testing::folders(["/sandbox"]);
        let path = crate::paths::resolve("x").unwrap();
        let no_space =
            "/sandbox/x could not be read: there is no space left; remove what is not needed";
        for (kind, want, message) in [
            (ErrorKind::NotFound, "not-found", "/sandbox/x does not exist"),
            (ErrorKind::PermissionDenied, "denied", "/sandbox/x may not be read"),
            (
                ErrorKind::ReadOnlyFilesystem,
                "failed",
                "/sandbox/x could not be read: read-only filesystem or storage medium",
            ),
            (ErrorKind::IsADirectory, "invalid-arguments", "/sandbox/x is a folder"),
            (ErrorKind::QuotaExceeded, "failed", no_space),
            (ErrorKind::Other, "failed", "/sandbox/x could not be read: other error"),
        ] {
            let error = path.explain("read", &kind.into());
            assert_eq!((error.kind(), error.message()), (want, message));
        }
    }
}
