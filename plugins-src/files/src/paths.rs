//! Paths as a model writes them, and the granted folder that each lies in.

use std::path::Path;

use sallyport_sdk::{folders, prelude::*};

/// Longest path, in bytes: what file systems accept.
const PATH_BYTES_MAX: usize = 4096;

/// A path inside a granted folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside {
    path: String,
    is_granted_folder: bool,
}

impl Inside {
    /// Returns the path for the file system.
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Returns the path for the model to read.
    pub(crate) fn text(&self) -> &str {
        &self.path
    }

    /// Tells whether this is a granted folder itself, which may be emptied and not removed.
    pub(crate) fn is_granted_folder(&self) -> bool {
        self.is_granted_folder
    }
}

/// Finds the granted folder of a path. `..` is worked out on the text, before the file system sees
/// it, so that what is checked is what is opened. A path without a leading `/` starts at the top.
///
/// # Errors
///
/// A path outside every granted folder, or one that no file can have.
pub(crate) fn resolve(path: &str) -> Result<Inside, ToolError> {
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
        return Err(ToolError::InvalidArguments(format!(
            "argument `path`: use 1 to {PATH_BYTES_MAX} bytes and no zero byte"
        )));
    }
    let path = normal(path);
    let granted = folders::granted();
    let holds = |folder: &String| Path::new(&path).starts_with(normal(folder));
    if !granted.iter().any(holds) {
        return Err(outside(&path, &granted));
    }
    let is_granted_folder = granted.iter().any(|folder| normal(folder) == path);
    Ok(Inside { path, is_granted_folder })
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
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
            assert_eq!((inside.text(), inside.is_granted_folder()), (want, is_granted_folder));
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
