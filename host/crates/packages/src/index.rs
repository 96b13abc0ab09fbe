//! The package index that the operator configured.

use std::{path::PathBuf, sync::Arc};

use reqwest::Client;
use sallyport_contract::{
    BoxFuture,
    services::{PackageFetchError, PackageFile, PackageService},
};
use url::Url;

use crate::{
    download::{self, index_unavailable},
    kept::{self, sha256_digest},
    listing::{self, WheelEntry},
    project::{self, ProjectVersion, is_same_version},
    wheel,
};

/// Why an index cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageIndexError {
    /// The address is not an http or https URL. It is not shown: it may have a password, which cannot
    /// be told from the rest of a text that is no URL, and plugins read the error.
    #[error("the configured text is not the address of a package index")]
    Address,
    /// The HTTP client cannot be created.
    #[error("{0}")]
    Client(String),
}

impl PackageIndexError {
    /// Returns how to fix it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Address => Some("write it like https://packages.example.com/simple/"),
            Self::Client(_) => None,
        }
    }
}

/// A package index with its cache.
pub struct PackageIndex {
    base: Url,
    client: Client,
    folder: PathBuf,
}

impl PackageIndex {
    /// Opens an index. `address` is the URL of its root, which contains a page for each project.
    /// `folder` is the cache, which is separate for each index. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// The address is not an http or https URL, or the HTTP client cannot be created.
    pub fn open(address: &str, folder: PathBuf) -> Result<Self, PackageIndexError> {
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let base = Url::parse(address).ok().filter(is_web).ok_or(PackageIndexError::Address)?;
        let client =
            download::build_client(base.scheme() == "https").map_err(PackageIndexError::Client)?;
        let base = with_trailing_slash(base);
        let folder = folder.join(kept::cache_folder_name(&without_password(base.clone())));
        Ok(Self { base, client, folder })
    }

    /// Returns the wheels on the page of a project. `name` must be normalized.
    async fn fetch_entries(&self, name: &str) -> Result<Vec<WheelEntry>, PackageFetchError> {
        let address = self.base.join(&format!("{name}/"));
        let address = address.map_err(|_| index_unavailable("its address is broken"))?;
        let page = download::fetch_page(&self.client, address).await?;
        let page = page.ok_or_else(|| {
            PackageFetchError::NotFound(format!("the index has no package {name}"))
        })?;
        Ok(listing::parse_page(&page.url, &page.media_type, &page.text))
    }

    async fn fetch_from_index(
        &self,
        project: &ProjectVersion,
    ) -> Result<Vec<u8>, PackageFetchError> {
        let entries = self.fetch_entries(&project.name).await?;
        let entry = listing::choose_entry(&entries, project)
            .ok_or_else(|| PackageFetchError::NotFound(not_found_reason(&entries, project)))?;
        self.download_entry(entry, project).await
    }

    async fn download_entry(
        &self,
        entry: &WheelEntry,
        project: &ProjectVersion,
    ) -> Result<Vec<u8>, PackageFetchError> {
        let ProjectVersion { name, version } = project;
        let wanted = entry.digest.ok_or_else(|| {
            index_unavailable(&format!("it lists no SHA-256 digest for {name} {version}"))
        })?;
        let bytes = download::fetch_wheel(&self.client, entry.url.clone()).await?;
        let bytes = bytes.ok_or_else(|| {
            index_unavailable(&format!("it lists {name} {version} but does not have it"))
        })?;
        if sha256_digest(&bytes) != wanted {
            return Err(index_unavailable(&format!(
                "the SHA-256 of {name} {version} differs from the listed one"
            )));
        }
        Ok(bytes)
    }

    async fn load_wheel(&self, project: &ProjectVersion) -> Result<Vec<u8>, PackageFetchError> {
        let (folder, wanted) = (self.folder.clone(), project.clone());
        if let Some(bytes) = run_blocking(move || kept::find_cached_wheel(&folder, &wanted)).await?
        {
            return Ok(bytes);
        }
        let bytes = self.fetch_from_index(project).await?;
        let (folder, project) = (self.folder.clone(), project.clone());
        run_blocking(move || {
            // If caching fails, the wheel is downloaded again next time.
            let _ = kept::cache_wheel(&folder, &project, &bytes);
            bytes
        })
        .await
    }
}

impl PackageService for PackageIndex {
    fn list_releases<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageFetchError>> {
        Box::pin(async move {
            let name = project::parse_project_name(name)?;
            let releases = listing::available_versions(&self.fetch_entries(&name).await?, &name);
            if releases.is_empty() {
                let why = format!("the index has no wheel of {name} in pure Python");
                return Err(PackageFetchError::NotFound(why));
            }
            Ok(releases)
        })
    }

    fn fetch_package<'a>(
        &'a self,
        name: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageFetchError>> {
        Box::pin(async move {
            let bytes = self.load_wheel(&ProjectVersion::new(name, version)?).await?;
            run_blocking(move || wheel::unpack_wheel(&bytes)).await?.map(Arc::from)
        })
    }
}

/// Runs blocking work on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PackageFetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| index_unavailable("the host failed while it handled a package"))
}

/// Adds a trailing slash. Without it, joining a path would drop the last segment.
fn with_trailing_slash(mut base: Url) -> Url {
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", base.path()));
    }
    base
}

fn without_password(mut url: Url) -> String {
    // This fails only for a URL that cannot have a password.
    let _ = url.set_password(None);
    url.to_string()
}

fn not_found_reason(entries: &[WheelEntry], project: &ProjectVersion) -> String {
    let ProjectVersion { name, version } = project;
    let of_version =
        || entries.iter().filter(|entry| is_same_version(&entry.name.version, version));
    if of_version().any(|entry| entry.leaves_https) {
        format!("the link to {name} {version} leads away from https")
    } else if of_version().next().is_some() {
        format!("{name} {version} has no wheel in pure Python")
    } else {
        format!("the index has no wheel of {name} in version {version}")
    }
}
