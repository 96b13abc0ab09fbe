//! Language packages from an index.

use std::sync::Arc;

use crate::boxed_future::BoxFuture;

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// Its path within the package, with slashes, without `.` and `..`.
    pub path: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Why a package is not available, in a text that a plugin may read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageFetchError {
    /// The package does not exist, not in this version, or not in pure Python.
    #[error("{0}")]
    NotFound(String),
    /// The index cannot be reached, or sent something other than it announced.
    #[error("{0}")]
    Unavailable(String),
}

/// Fetches packages.
pub trait PackageService: Send + Sync {
    /// Lists the versions of a package that can be fetched, newest first; never empty.
    ///
    /// # Errors
    ///
    /// See [`PackageFetchError`].
    fn list_releases<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageFetchError>>;

    /// Fetches one version of a package, checked and unpacked, without its dependencies.
    ///
    /// # Errors
    ///
    /// See [`PackageFetchError`].
    fn fetch_package<'a>(
        &'a self,
        name: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageFetchError>>;
}
