//! Error messages specific to granted folders, written for a model.

use std::io::ErrorKind;

use granted_folders::Wording;
use sallyport_sdk::ToolError;

/// The wording for granted folders.
pub(crate) static WORDING: Wording = Wording { top: "a granted folder", explain };

fn explain(path: &str, action: &str, kind: ErrorKind) -> Option<ToolError> {
    match kind {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(ToolError::Denied(
            format!("{path} may not be {action}: the policy does not grant it"),
        )),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Some(ToolError::Failed(format!("{path}: there is no space left")))
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
        testing::folders(["/notes"]);
        let path = crate::paths::resolve("/notes/x").unwrap();
        for (kind, want, message) in [
            (ErrorKind::NotFound, "not-found", "/notes/x does not exist"),
            (
                ErrorKind::PermissionDenied,
                "denied",
                "/notes/x may not be read: the policy does not grant it",
            ),
            (
                ErrorKind::ReadOnlyFilesystem,
                "denied",
                "/notes/x may not be read: the policy does not grant it",
            ),
            (ErrorKind::IsADirectory, "invalid-arguments", "/notes/x is a folder"),
            (ErrorKind::QuotaExceeded, "failed", "/notes/x: there is no space left"),
            (ErrorKind::Other, "failed", "/notes/x could not be read: other error"),
        ] {
            let error = path.explain("read", &kind.into());
            assert_eq!((error.kind(), error.message()), (want, message));
        }
    }
}
