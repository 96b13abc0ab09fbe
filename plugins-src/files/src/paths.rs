//! Resolves paths from a model to granted folders.

use granted_folders::{Inside, check, normal};
use sallyport_sdk::{folders, prelude::*};

use crate::error::WORDING;

/// Resolves a path in its granted folder. A path without a leading `/` starts at the top.
///
/// # Errors
///
/// The path is outside every granted folder, or no file can have it.
pub(crate) fn resolve(path: &str) -> Result<Inside, ToolError> {
    check(path)?;
    let (path, granted) = (normal(path), folders::granted());
    Inside::find(&path, &granted, &WORDING).ok_or_else(|| outside(&path, &granted))
}

fn outside(path: &str, granted: &[String]) -> ToolError {
    let hint = match granted {
        [] => "no folder is granted to this plugin".to_owned(),
        folders => format!("granted are {}", folders.join(", ")),
    };
    ToolError::Denied(format!("{path} lies outside every granted folder; {hint}"))
}

#[cfg(test)]
mod tests {
    use granted_folders::PATH_BYTES_MAX;
    use sallyport_sdk::testing;

    use super::*;

    #[test]
    fn paths_inside_a_granted_folder_are_found() {
        testing::folders(["/notes", "/data/music/"]);
        for (path, want, is_granted_folder) in [
            ("/notes", "/notes", true),
            ("/notes/", "/notes", true),
            ("notes/todo.txt", "/notes/todo.txt", false),
            ("/notes//a/./b/../c", "/notes/a/c", false),
            ("/notes/../notes/x", "/notes/x", false),
            ("/data/music", "/data/music", true),
            ("/notes/a b\u{fc}", "/notes/a b\u{fc}", false),
            ("/notes/...", "/notes/...", false),
        ] {
            let inside = resolve(path).unwrap();
            assert_eq!((inside.text(), inside.is_top()), (want, is_granted_folder));
        }
    }

    #[test]
    fn paths_outside_are_denied_and_say_what_is_granted() {
        testing::folders(["/notes", "/data/music"]);
        for path in
            ["/", ".", "/etc/passwd", "/notes/../etc", "/notesx", "/data", "../notes2", "/NOTES"]
        {
            let error = resolve(path).unwrap_err();
            assert_eq!(error.kind(), "denied", "{path}");
            assert!(error.message().ends_with("granted are /data/music, /notes"), "{error}");
        }
        testing::folders::<String>([]);
        assert!(resolve("/notes").unwrap_err().message().contains("no folder is granted"));
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
