//! A path inside a granted folder.

use std::path::Path;

use sallyport_sdk::ToolError;

use crate::Wording;

/// Maximum length of a path, in bytes. File systems accept no more.
pub const PATH_BYTES_MAX: usize = 4096;

/// A path inside a granted folder.
#[derive(Debug, Clone)]
pub struct Inside {
    path: String,
    is_top: bool,
    pub(crate) wording: &'static Wording,
}

impl Inside {
    /// Finds a [`normal`] path in the granted folders `tops`. Returns `None` if it is outside of
    /// them.
    #[must_use]
    pub fn find(path: &str, tops: &[String], wording: &'static Wording) -> Option<Self> {
        let tops: Vec<String> = tops.iter().map(|top| normal(top)).collect();
        let is_inside = tops.iter().any(|top| Path::new(path).starts_with(top));
        let is_top = tops.iter().any(|top| top == path);
        is_inside.then(|| Self { path: path.to_owned(), is_top, wording })
    }

    /// Returns the path for file system calls.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Returns the path for messages to the model.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.path
    }

    /// Returns whether this is a granted folder itself. It can be emptied, but not removed.
    #[must_use]
    pub fn is_top(&self) -> bool {
        self.is_top
    }
}

/// Checks a path from a model.
///
/// # Errors
///
/// No file can have this path.
pub fn check(path: &str) -> Result<(), ToolError> {
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
        return Err(ToolError::InvalidArguments(format!(
            "argument `path`: use 1 to {PATH_BYTES_MAX} bytes and no zero byte"
        )));
    }
    Ok(())
}

/// Returns an absolute path without `.` and `..`. They are resolved in the text, before the file
/// system sees it, so that the path that is checked is the path that is opened.
#[must_use]
pub fn normal(path: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::WORDING;

    #[test]
    fn paths_are_found_in_their_folders() {
        let tops = ["/notes".to_owned(), "/data/music/".to_owned()];
        for (path, is_top) in [
            ("/notes", Some(true)),
            ("/notes/todo.txt", Some(false)),
            ("/notes/a b\u{fc}", Some(false)),
            ("/data/music", Some(true)),
            ("/data/music/a", Some(false)),
            ("/", None),
            ("/data", None),
            ("/notesx", None),
            ("/NOTES", None),
        ] {
            let inside = Inside::find(path, &tops, &WORDING);
            assert_eq!(inside.map(|inside| inside.is_top()), is_top, "{path}");
        }
        assert!(Inside::find("/notes", &[], &WORDING).is_none());
    }

    #[test]
    fn paths_are_read_from_the_top() {
        for (path, want) in [
            ("/", "/"),
            (".", "/"),
            ("a", "/a"),
            ("/a//b/./c/", "/a/b/c"),
            ("/a/b/../c", "/a/c"),
            ("../../a", "/a"),
            ("/a/../../b", "/b"),
            ("/a/...", "/a/..."),
        ] {
            assert_eq!(normal(path), want, "{path}");
        }
    }

    #[test]
    fn paths_that_no_file_can_have_are_refused() {
        for path in ["", "/a\0b", &"a".repeat(PATH_BYTES_MAX + 1)] {
            assert_eq!(check(path).unwrap_err().kind(), "invalid-arguments");
        }
        for path in ["a", "/", &"a".repeat(PATH_BYTES_MAX)] {
            check(path).unwrap();
        }
    }
}
