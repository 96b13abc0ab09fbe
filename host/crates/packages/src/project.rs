//! A requested package: a project and its version.

use sallyport_contract::{services::PackageFetchError, text::escape_excerpt};

/// Maximum length of a name, in bytes. Real names are shorter.
const NAME_BYTES_MAX: usize = 128;

/// Maximum length of a version, in bytes. Real versions are shorter.
const VERSION_BYTES_MAX: usize = 64;

/// Maximum length of an invalid name or version in an error, in characters.
const QUOTED_CHARS_MAX: usize = 60;

/// A project and its version, both normalized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectVersion {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl ProjectVersion {
    /// Validates and normalizes a guest's request.
    ///
    /// # Errors
    ///
    /// The name or the version is invalid. A valid one cannot alter a path or an address.
    pub(crate) fn new(name: &str, version: &str) -> Result<Self, PackageFetchError> {
        let name = parse_project_name(name)?;
        let is_version = version.len() <= VERSION_BYTES_MAX
            && version.starts_with(|c: char| c.is_ascii_digit())
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || b".+!-_".contains(&b));
        if !is_version {
            return Err(invalid_input_error("a version", version));
        }
        Ok(Self { name, version: normalize_version(version) })
    }
}

/// Validates and normalizes the name of a project.
///
/// # Errors
///
/// The name is invalid. A valid one cannot alter a path or an address.
pub(crate) fn parse_project_name(name: &str) -> Result<String, PackageFetchError> {
    let is_name = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if is_name {
        Ok(normalize_name(name))
    } else {
        Err(invalid_input_error("the name of a package", name))
    }
}

fn invalid_input_error(what: &str, text: &str) -> PackageFetchError {
    PackageFetchError::NotFound(format!(
        "{:?} is not {what}",
        escape_excerpt(text, QUOTED_CHARS_MAX)
    ))
}

/// Normalizes a name: lower case, and one dash for each run of `-`, `_` and `.`.
pub(crate) fn normalize_name(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Normalizes the common spellings of a version: lower case, and `.` for `-`, `_` and `+`. File
/// names cannot contain every separator.
pub(crate) fn normalize_version(version: &str) -> String {
    version.to_ascii_lowercase().replace(['-', '_', '+'], ".")
}

/// Returns whether two normalized versions are equal: `1.2` equals `1.2.0`, as in policies.
pub(crate) fn is_same_version(one: &str, other: &str) -> bool {
    fn without_trailing_zeros(version: &str) -> &str {
        let is_release = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let mut short = version;
        while let Some(front) = short.strip_suffix(".0").filter(|_| is_release) {
            short = front;
        }
        short
    }
    without_trailing_zeros(one) == without_trailing_zeros(other)
}
