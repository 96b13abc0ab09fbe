//! What is asked for: a project of the index and one version of it.

use sallyport_contract::{services::PackageError, text::excerpt};

/// Longest name; those of real projects have less.
const NAME_BYTES_MAX: usize = 128;

/// Longest version; those of real projects have less.
const VERSION_BYTES_MAX: usize = 64;

/// Most characters of a wrong name or version that are told again.
const TOLD_CHARS_MAX: usize = 60;

/// A project and one version of it, both in the form that indexes compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Project {
    /// Checks and normalises what a guest asks for.
    ///
    /// # Errors
    ///
    /// It is no name or no version; nothing of it could be a path or a part of an address.
    pub(crate) fn new(name: &str, version: &str) -> Result<Self, PackageError> {
        let name = checked_name(name)?;
        let is_version = version.len() <= VERSION_BYTES_MAX
            && version.starts_with(|c: char| c.is_ascii_digit())
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || b".+!-_".contains(&b));
        if !is_version {
            return Err(wrong("a version", version));
        }
        Ok(Self { name, version: normal_version(version) })
    }
}

/// Checks and normalises the name of a project.
///
/// # Errors
///
/// It is no name; nothing of it could be a path or a part of an address.
pub(crate) fn checked_name(name: &str) -> Result<String, PackageError> {
    let is_name = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if is_name { Ok(normal_name(name)) } else { Err(wrong("the name of a package", name)) }
}

fn wrong(what: &str, text: &str) -> PackageError {
    PackageError::NotFound(format!("{:?} is not {what}", excerpt(text, TOLD_CHARS_MAX)))
}

/// A name as indexes compare it: lower case, and one dash for each run of `-`, `_` and `.`.
pub(crate) fn normal_name(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// A version as far as spellings of one differ in practice: its case, and `-` or `_` for the `+` and
/// `.` that file names cannot hold.
pub(crate) fn normal_version(version: &str) -> String {
    version.to_ascii_lowercase().replace(['-', '_', '+'], ".")
}

/// Whether two versions in their normal form are the same: `1.2` is `1.2.0`, as policies have it.
pub(crate) fn is_same_version(one: &str, other: &str) -> bool {
    fn shortened(version: &str) -> &str {
        let is_release = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let mut short = version;
        while let Some(front) = short.strip_suffix(".0").filter(|_| is_release) {
            short = front;
        }
        short
    }
    shortened(one) == shortened(other)
}
