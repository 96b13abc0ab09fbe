//! Packages of a language, fetched, checked and kept by the host.
//!
//! For plugins that run a language of their own. The manifest requests `packages`, and the policy
//! names which.

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
    /// Its path within the package, with slashes.
    pub path: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Why a package cannot be had; `?` turns it into the fitting [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, packages::PackageError};
///
/// let error = PackageError::NotFound { reason: "there is no six 99.0".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "not-found");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageError {
    /// It is not granted to this plugin.
    Denied {
        /// Why.
        reason: String,
    },
    /// There is no such package, not in this version, or not in pure Python.
    NotFound {
        /// Which it is.
        reason: String,
    },
    /// The index cannot be reached, or what it sent is not what it announced.
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

/// Lists the versions of a package that [`fetch`] would get, the newest first.
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
/// A package that is not granted, does not exist, or an index that cannot be reached.
pub fn releases(name: &str) -> Result<Vec<String>, PackageError> {
    host::packages::releases(name)
}

/// Fetches one version of a package, without what it depends on.
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
/// A package that is not granted, does not exist or cannot be fetched.
pub fn fetch(name: &str, version: &str) -> Result<Vec<File>, PackageError> {
    host::packages::fetch(name, version)
}
