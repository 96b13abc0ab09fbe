//! Packages of a language, from an index.

use std::sync::Arc;

use crate::toolbox::BoxFuture;

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// Its path within the package, with slashes, without `.` and `..`.
    pub path: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Why a package cannot be had, in words that a plugin may read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// There is no such package, not in this version, or not in pure Python.
    #[error("{0}")]
    NotFound(String),
    /// The index cannot be reached, or what it sent is not what it announced.
    #[error("{0}")]
    Unavailable(String),
}

/// Fetches packages.
pub trait Packages: Send + Sync {
    /// Lists the versions of a package that could be fetched, the newest first; never none.
    ///
    /// # Errors
    ///
    /// See [`PackageError`].
    fn releases<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, PackageError>>;

    /// Fetches one version of a package, checked and unpacked, without what it depends on.
    ///
    /// # Errors
    ///
    /// See [`PackageError`].
    fn fetch<'a>(
        &'a self,
        name: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageError>>;
}
