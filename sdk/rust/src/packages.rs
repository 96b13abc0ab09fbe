//! Packages of a programming language, which the host fetches, verifies and caches.
//!
//! For plugins that run an interpreter of their own. The manifest requests `packages`, and the
//! policy lists the granted ones.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// A file of a package.
///
/// ```
/// use sallyport_sdk::packages::File;
///
/// let file = File { path: "six.py".to_owned(), data: b"PY3 = True\n".to_vec() };
/// assert!(!file.path.starts_with('/'));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path within the package, with `/` as separator.
    pub path: String,
    /// The contents.
    pub data: Vec<u8>,
}

/// Why a package cannot be fetched. `?` converts it into the matching [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, packages::PackageError};
///
/// let error = PackageError::NotFound { reason: "there is no six 99.0".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "not-found");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageError {
    /// The policy does not grant the package to this plugin.
    Denied {
        /// Why.
        reason: String,
    },
    /// The package does not exist, not in this version, or not in pure Python.
    NotFound {
        /// What does not exist.
        reason: String,
    },
    /// The index cannot be reached, or a download does not match the index.
    Unavailable {
        /// What went wrong.
        reason: String,
    },
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Denied { reason } | Self::NotFound { reason } | Self::Unavailable { reason }) =
            self;
        f.write_str(reason)
    }
}

impl Error for PackageError {}

impl From<PackageError> for ToolError {
    fn from(error: PackageError) -> Self {
        match error {
            PackageError::Denied { reason } => Self::Denied(reason),
            PackageError::NotFound { reason } => Self::NotFound(reason),
            PackageError::Unavailable { reason } => Self::Unavailable(reason),
        }
    }
}

/// Lists the versions of a package that [`fetch`] can return, newest first.
///
/// ```
/// use sallyport_sdk::{packages, testing};
///
/// testing::grant([testing::Power::Packages]);
/// testing::package("six", "1.16.0", []);
/// testing::package("six", "1.17.0", []);
/// assert_eq!(packages::releases("six")?, ["1.17.0", "1.16.0"]);
/// # Ok::<(), packages::PackageError>(())
/// ```
///
/// # Errors
///
/// The package is not granted or does not exist, or the index cannot be reached.
pub fn releases(name: &str) -> Result<Vec<String>, PackageError> {
    host::packages::releases(name)
}

/// Fetches one version of a package, without its dependencies.
///
/// ```
/// use sallyport_sdk::{packages::{self, File}, testing};
///
/// testing::grant([testing::Power::Packages]);
/// testing::package("six", "1.17.0", [File { path: "six.py".to_owned(), data: vec![] }]);
/// assert_eq!(packages::fetch("six", "1.17.0")?[0].path, "six.py");
/// assert!(packages::fetch("six", "99.0").is_err());
/// # Ok::<(), packages::PackageError>(())
/// ```
///
/// # Errors
///
/// The package is not granted, does not exist or cannot be fetched.
pub fn fetch(name: &str, version: &str) -> Result<Vec<File>, PackageError> {
    host::packages::fetch(name, version)
}
