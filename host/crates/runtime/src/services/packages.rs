//! Packages of a programming language, from the configured index.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{
    BoxFuture,
    services::{PackageFetchError, PackageFile, PackageService},
};
use sallyport_packages::Index;

/// A package index that is opened at its first use.
pub(super) struct Shelf {
    address: Option<String>,
    /// Caches fetched packages.
    folder: PathBuf,
    index: OnceLock<Result<Index, PackageFetchError>>,
}

impl Shelf {
    pub(super) fn new(address: Option<String>, folder: PathBuf) -> Self {
        Self { address, folder, index: OnceLock::new() }
    }

    fn index(&self) -> Result<&Index, PackageFetchError> {
        let opened = self.index.get_or_init(|| {
            let unavailable = PackageFetchError::Unavailable;
            let address = self.address.as_deref().ok_or_else(|| {
                let why = "no index of packages is configured: sallyport.toml has no";
                unavailable(format!("{why} [packages] index"))
            })?;
            Index::open(address, self.folder.clone()).map_err(|error| {
                let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                unavailable(format!("[packages] index: {error}{hint}"))
            })
        });
        opened.as_ref().map_err(Clone::clone)
    }
}

impl PackageService for Shelf {
    fn list_releases<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageFetchError>> {
        Box::pin(async move { self.index()?.list_releases(name).await })
    }

    fn fetch_package<'a>(
        &'a self,
        name: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageFetchError>> {
        Box::pin(async move { self.index()?.fetch_package(name, version).await })
    }
}
