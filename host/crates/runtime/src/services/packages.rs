//! Packages of a programming language, from the configured index.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{
    BoxFuture,
    services::{PackageFetchError, PackageFile, PackageService},
};
use sallyport_packages::PackageIndex;

/// A package index that is opened at its first use.
pub(super) struct LazyPackageIndex {
    address: Option<String>,
    /// Caches fetched packages.
    folder: PathBuf,
    index: OnceLock<Result<PackageIndex, PackageFetchError>>,
}

impl LazyPackageIndex {
    pub(super) fn new(address: Option<String>, folder: PathBuf) -> Self {
        Self { address, folder, index: OnceLock::new() }
    }

    fn open_index(&self) -> Result<&PackageIndex, PackageFetchError> {
        let opened = self.index.get_or_init(|| {
            let unavailable = PackageFetchError::Unavailable;
            let address = self.address.as_deref().ok_or_else(|| {
                let why = "no index of packages is configured: sallyport.toml has no";
                unavailable(format!("{why} [packages] index"))
            })?;
            PackageIndex::open(address, self.folder.clone()).map_err(|error| {
                let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                unavailable(format!("[packages] index: {error}{hint}"))
            })
        });
        opened.as_ref().map_err(Clone::clone)
    }
}

impl PackageService for LazyPackageIndex {
    fn list_releases<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageFetchError>> {
        Box::pin(async move { self.open_index()?.list_releases(name).await })
    }

    fn fetch_package<'a>(
        &'a self,
        name: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageFetchError>> {
        Box::pin(async move { self.open_index()?.fetch_package(name, version).await })
    }
}
