//! Paths as a model writes them, and where they lead in the session's file system.

use std::path::Path;

use sallyport_sdk::{folders, prelude::*};

/// Longest path, in bytes: what file systems accept.
const PATH_BYTES_MAX: usize = 4096;

/// A path in the session's file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside {
    path: String,
    is_root: bool,
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

    /// Tells whether this is the whole file system, which may be emptied and not removed.
    pub(crate) fn is_root(&self) -> bool {
        self.is_root
    }
}

/// Finds where a path leads. One without a leading `/` begins at the top of the session's file
/// system, as it does for the programs that work there. `..` is worked out on the text, before the
/// file system sees it, so that what is checked is what is opened.
///
/// # Errors
///
/// A path that leads elsewhere, or one that no file can have.
pub(crate) fn resolve(path: &str) -> Result<Inside, ToolError> {
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
        return Err(ToolError::InvalidArguments(format!(
            "argument `path`: use 1 to {PATH_BYTES_MAX} bytes and no zero byte"
        )));
    }
    let root = root()?;
    let path =
        normal(&if path.starts_with('/') { path.to_owned() } else { format!("{root}/{path}") });
    if !Path::new(&path).starts_with(&root) {
        return Err(ToolError::Denied(format!(
            "{path} lies outside the session's file system, which is {root}"
        )));
    }
    Ok(Inside { is_root: path == root, path })
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

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing;

    use super::*;

    #[test]
    fn paths_lead_into_the_file_system() {
        testing::folders(["/work/"]);
        for (path, want, is_root) in [
            ("/work", "/work", true),
            ("/work/", "/work", true),
            (".", "/work", true),
            ("a/..", "/work", true),
            ("a.csv", "/work/a.csv", false),
            ("/work//a/./b/../c", "/work/a/c", false),
            ("/work/../work/x", "/work/x", false),
            ("../work/x", "/work/x", false),
            ("work/x", "/work/work/x", false),
            ("a b\u{fc}", "/work/a b\u{fc}", false),
            ("...", "/work/...", false),
        ] {
            let inside = resolve(path).unwrap();
            assert_eq!((inside.text(), inside.is_root()), (want, is_root), "{path}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_denied() {
        testing::folders(["/work"]);
        for path in ["/", "/etc/passwd", "/work/../etc", "/workx", "..", "a/../../x", "/WORK"] {
            let error = resolve(path).unwrap_err();
            assert_eq!(error.kind(), "denied", "{path}");
            assert!(error.message().ends_with("file system, which is /work"), "{error}");
        }
        testing::folders::<String>([]);
        assert!(resolve("/work").unwrap_err().message().contains("no file system is granted"));
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
