//! The package index that the operator configured.

use std::{path::PathBuf, sync::Arc};

use reqwest::Client;
use sallyport_contract::{
    BoxFuture,
    services::{PackageFetchError, PackageFile, PackageService},
};
use url::Url;

use crate::{
    download::{self, unavailable},
    kept::{self, digest},
    listing::{self, Entry},
    project::{self, Project, is_same_version},
    wheel,
};

/// Why an index cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The address is not an http or https URL.
    #[error("{address:?} is not the address of a package index")]
    Address {
        /// The configured address, without its password.
        address: String,
    },
    /// The HTTP client cannot be created.
    #[error("{0}")]
    Client(String),
}

impl IndexError {
    /// Returns how to fix it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Address { .. } => Some("write it like https://packages.example.com/simple/"),
            Self::Client(_) => None,
        }
    }
}

/// A package index with its cache.
pub struct Index {
    base: Url,
    client: Client,
    folder: PathBuf,
}

impl Index {
    /// Opens an index. `address` is the URL of its root, which contains a page for each project.
    /// `folder` is the cache, which is separate for each index. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// The address is not an http or https URL, or the HTTP client cannot be created.
    pub fn open(address: &str, folder: PathBuf) -> Result<Self, IndexError> {
        let parsed = Url::parse(address).ok();
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let base = parsed.clone().filter(is_web).ok_or_else(|| IndexError::Address {
            address: parsed.map(without_password).unwrap_or_else(|| address.to_owned()),
        })?;
        let client = download::client(base.scheme() == "https").map_err(IndexError::Client)?;
        let base = with_slash(base);
        let folder = folder.join(kept::shelf(&without_password(base.clone())));
        Ok(Self { base, client, folder })
    }

    /// Returns the wheels on the page of a project. `name` must be normalized.
    async fn entries(&self, name: &str) -> Result<Vec<Entry>, PackageFetchError> {
        let address = self.base.join(&format!("{name}/"));
        let address = address.map_err(|_| unavailable("its address is broken"))?;
        let page = download::page(&self.client, address).await?;
        let page = page.ok_or_else(|| {
            PackageFetchError::NotFound(format!("the index has no package {name}"))
        })?;
        Ok(listing::read(&page.url, &page.media_type, &page.text))
    }

    async fn find(&self, project: &Project) -> Result<Vec<u8>, PackageFetchError> {
        let entries = self.entries(&project.name).await?;
        let entry = listing::choose(&entries, project)
            .ok_or_else(|| PackageFetchError::NotFound(missing(&entries, project)))?;
        self.download(entry, project).await
    }

    async fn download(
        &self,
        entry: &Entry,
        project: &Project,
    ) -> Result<Vec<u8>, PackageFetchError> {
        let Project { name, version } = project;
        let wanted = entry.digest.ok_or_else(|| {
            unavailable(&format!("it gives no SHA-256 digest for {name} {version}"))
        })?;
        let bytes = download::wheel(&self.client, entry.url.clone()).await?;
        let bytes = bytes.ok_or_else(|| {
            unavailable(&format!("it lists {name} {version} and does not have it"))
        })?;
        if digest(&bytes) != wanted {
            return Err(unavailable(&format!(
                "what it sent for {name} {version} is not what it announced (its SHA-256 differs)"
            )));
        }
        Ok(bytes)
    }

    async fn wheel(&self, project: &Project) -> Result<Vec<u8>, PackageFetchError> {
        let (folder, wanted) = (self.folder.clone(), project.clone());
        if let Some(bytes) = apart(move || kept::find(&folder, &wanted)).await? {
            return Ok(bytes);
        }
        let bytes = self.find(project).await?;
        let (folder, project) = (self.folder.clone(), project.clone());
        apart(move || {
            // If caching fails, the wheel is downloaded again next time.
            let _ = kept::keep(&folder, &project, &bytes);
            bytes
        })
        .await
    }
}

impl PackageService for Index {
    fn list_releases<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageFetchError>> {
        Box::pin(async move {
            let name = project::checked_name(name)?;
            let releases = listing::releases(&self.entries(&name).await?, &name);
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
            let bytes = self.wheel(&Project::new(name, version)?).await?;
            apart(move || wheel::unpack(&bytes)).await?.map(Arc::from)
        })
    }
}

/// Runs blocking work on a blocking thread.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PackageFetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| unavailable("the host failed while it handled a package"))
}

/// Adds a trailing slash. Without it, joining a path would drop the last segment.
fn with_slash(mut base: Url) -> Url {
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

fn missing(entries: &[Entry], project: &Project) -> String {
    let Project { name, version } = project;
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
