//! Packages of a programming language, which the host fetches, verifies and caches.
//!
//! For plugins that run an interpreter of their own. The manifest requests `packages`, and the
//! policy lists the granted ones.

use std::{error::Error, fmt};

use crate::ToolError;

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
    host::releases(name)
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
    host::fetch(name, version)
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    use super::{File, PackageError};
    use crate::guest::{bindings::powers::sallyport::plugin::packages as wit, message};

    pub(crate) fn fetch(name: &str, version: &str) -> Result<Vec<File>, PackageError> {
        let files = wit::fetch(name, version)?.into_iter();
        Ok(files.map(|wit::File { path, data, extra: _ }| File { path, data }).collect())
    }

    pub(crate) fn releases(name: &str) -> Result<Vec<String>, PackageError> {
        Ok(wit::releases(name)?.into_iter().map(|release| release.version).collect())
    }

    impl From<wit::Error> for PackageError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::Denied(reason) => Self::Denied { reason },
                wit::Error::NotFound(reason) => Self::NotFound { reason },
                wit::Error::Unavailable(reason) => Self::Unavailable { reason },
                wit::Error::Other(other) => Self::Unavailable { reason: message(other) },
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::{cell::RefCell, collections::BTreeMap};

    use super::{File, PackageError};
    use crate::testing::{Power, is_granted};

    thread_local! {
        static PACKAGES: RefCell<BTreeMap<(String, String), Vec<File>>> = RefCell::default();
    }

    /// Adds a package to the index.
    ///
    /// ```
    /// use sallyport_sdk::{packages, testing};
    ///
    /// testing::grant([testing::Power::Packages]);
    /// testing::package("six", "1.17.0", []);
    /// assert_eq!(packages::fetch("six", "1.17.0"), Ok(vec![]));
    /// ```
    pub fn package(
        name: impl Into<String>,
        version: impl Into<String>,
        files: impl IntoIterator<Item = File>,
    ) {
        let files = files.into_iter().collect();
        PACKAGES.with_borrow_mut(|packages| packages.insert((name.into(), version.into()), files));
    }

    pub(crate) fn releases(name: &str) -> Result<Vec<String>, PackageError> {
        if !is_granted(Power::Packages) {
            let reason = format!("the policy does not grant {name}");
            return Err(PackageError::Denied { reason });
        }
        // Versions are compared as text, which is sufficient for tests.
        let versions: Vec<String> = PACKAGES.with_borrow(|packages| {
            let named = packages.keys().rev().filter(|(package, _)| package == name);
            named.map(|(_, version)| version.clone()).collect()
        });
        if versions.is_empty() {
            return Err(PackageError::NotFound { reason: format!("there is no {name}") });
        }
        Ok(versions)
    }

    pub(crate) fn fetch(name: &str, version: &str) -> Result<Vec<File>, PackageError> {
        if !is_granted(Power::Packages) {
            return Err(PackageError::Denied { reason: format!("{name} is not granted") });
        }
        let key = (name.to_owned(), version.to_owned());
        let files = PACKAGES.with_borrow(|packages| packages.get(&key).cloned());
        files.ok_or_else(|| PackageError::NotFound { reason: format!("no {name} {version}") })
    }
}
