//! Resolves paths from a model in the session's file system.

use std::slice;

use granted_folders::{Inside, check, normal};
use sallyport_sdk::{folders, prelude::*};

use crate::error::WORDING;

/// Resolves a path. A path without a leading `/` starts at the top of the session's file system, as
/// it does for programs of the session.
///
/// # Errors
///
/// The path is outside the file system, or no file can have it.
pub(crate) fn resolve(path: &str) -> Result<Inside, ToolError> {
    check(path)?;
    let root = root()?;
    let path =
        normal(&if path.starts_with('/') { path.to_owned() } else { format!("{root}/{path}") });
    Inside::find(&path, slice::from_ref(&root), &WORDING).ok_or_else(|| {
        ToolError::Denied(format!("{path} lies outside the session's file system, which is {root}"))
    })
}

fn root() -> Result<String, ToolError> {
    match folders::granted().first() {
        Some(folder) => Ok(normal(folder)),
        None => Err(ToolError::Denied(
            "no file system is granted to this plugin: the policy has no `scratch` for it"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use granted_folders::PATH_BYTES_MAX;
    use sallyport_sdk::testing;

    use super::*;

    #[test]
    fn paths_lead_into_the_file_system() {
        testing::folders(["/sandbox/"]);
        for (path, want, is_root) in [
            ("/sandbox", "/sandbox", true),
            ("/sandbox/", "/sandbox", true),
            (".", "/sandbox", true),
            ("a/..", "/sandbox", true),
            ("a.csv", "/sandbox/a.csv", false),
            ("/sandbox//a/./b/../c", "/sandbox/a/c", false),
            ("/sandbox/../sandbox/x", "/sandbox/x", false),
            ("../sandbox/x", "/sandbox/x", false),
            ("sandbox/x", "/sandbox/sandbox/x", false),
            ("a b\u{fc}", "/sandbox/a b\u{fc}", false),
            ("...", "/sandbox/...", false),
        ] {
            let inside = resolve(path).unwrap();
            assert_eq!((inside.text(), inside.is_top()), (want, is_root), "{path}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_denied() {
        testing::folders(["/sandbox"]);
        for path in
            ["/", "/etc/passwd", "/sandbox/../etc", "/sandboxx", "..", "a/../../x", "/SANDBOX"]
        {
            let error = resolve(path).unwrap_err();
            assert_eq!(error.kind(), "denied", "{path}");
            assert!(error.message().ends_with("file system, which is /sandbox"), "{error}");
        }
        testing::folders::<String>([]);
        assert!(resolve("/sandbox").unwrap_err().message().contains("no file system is granted"));
    }

    #[test]
    fn paths_that_no_file_can_have_are_refused() {
        testing::folders(["/"]);
        for path in ["", "/a\0b", &"a/".repeat(PATH_BYTES_MAX)] {
            assert_eq!(resolve(path).unwrap_err().kind(), "invalid-arguments");
        }
        assert_eq!(resolve("/any/thing").unwrap().text(), "/any/thing");
    }
}
