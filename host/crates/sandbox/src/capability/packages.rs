//! `packages`: packages of a language, from the index that the host is configured with.

use std::sync::Arc;

use sallyport_contract::{
    Denial,
    services::{PackageFetchError, PackageFile, PackageService},
};
use sallyport_policy::{Capability, PackagesGrant};

use super::{HostCall, HostCallError, HostCallLimit, error_outcome};
use crate::bindings::v0_1::sallyport::plugin::packages::{Error, File, Host, Release};

/// Most patterns of the policy that a refusal lists.
const PATTERNS_LISTED_MAX: usize = 20;

/// Packages that one run fetches, including dependencies.
const PACKAGES: HostCallLimit = HostCallLimit { calls_max: 100, unit: "packages" };

impl Host for HostCall<'_> {
    /// The versions that the index has and the grant allows.
    async fn releases(&mut self, name: String) -> Result<Vec<Release>, Error> {
        let packages = self.require_packages(|packages| packages.check_name(&name)).await?;
        let what = format!("list the versions of {}", self.quote_for_record(&name));
        let work = packages.list_releases(&name);
        let listed = self.record_use(Capability::Packages, what, work, error_outcome).await?;
        // The policy may have changed in the meantime.
        let grant = self.run_context.current_grant();
        let granted = |version: &String| grant.packages().check_version(&name, version).is_ok();
        let granted = listed.into_iter().filter(granted);
        Ok(granted.map(|version| Release { version, extra: None }).collect())
    }

    async fn fetch(&mut self, name: String, version: String) -> Result<Vec<File>, Error> {
        let check = |packages: &PackagesGrant| packages.check_version(&name, &version);
        let packages = self.require_packages(check).await?;
        let what =
            format!("fetch {} {}", self.quote_for_record(&name), self.quote_for_record(&version));
        let work = packages.fetch_package(&name, &version);
        let files = self.record_use(Capability::Packages, what, work, describe_fetch).await?;
        Ok(files.iter().map(file_to_guest).collect())
    }
}

impl HostCall<'_> {
    /// The service, if the grant covers what is asked for. A refusal lists the granted patterns, so
    /// that the model does not have to guess.
    async fn require_packages(
        &mut self,
        check: impl Fn(&PackagesGrant) -> Result<(), Denial>,
    ) -> Result<Arc<dyn PackageService>, Error> {
        let checked = self.require_permission(|grant| check(grant.packages())).await;
        if let Err(refused) = checked {
            let grant = self.run_context.current_grant();
            let mut patterns: Vec<String> =
                grant.packages().pattern_texts().take(PATTERNS_LISTED_MAX + 1).collect();
            if patterns.len() > PATTERNS_LISTED_MAX {
                patterns[PATTERNS_LISTED_MAX] = "…".to_owned();
            }
            let granted = patterns.join(", ");
            return Err(match Error::from(refused) {
                Error::Denied(why) if !granted.is_empty() => {
                    Error::Denied(format!("{why}; granted: {granted}"))
                }
                error => error,
            });
        }
        self.count_call(&PACKAGES)?;
        Ok(self.require_service(|services| services.packages, "no packages can be fetched here")?)
    }
}

fn describe_fetch(fetched: &Result<Arc<[PackageFile]>, PackageFetchError>) -> Option<String> {
    let Ok(files) = fetched else { return error_outcome(fetched) };
    let bytes: usize = files.iter().map(|file| file.data.len()).sum();
    Some(format!(" ({} files, {bytes} bytes)", files.len()))
}

fn file_to_guest(file: &PackageFile) -> File {
    File { path: file.path.clone(), data: file.data.clone(), extra: None }
}

impl From<PackageFetchError> for Error {
    fn from(error: PackageFetchError) -> Self {
        match error {
            PackageFetchError::NotFound(text) => Self::NotFound(text),
            PackageFetchError::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

impl From<HostCallError> for Error {
    fn from(error: HostCallError) -> Self {
        match error {
            HostCallError::Refused(denial) => Self::Denied(denial.reason.to_string()),
            HostCallError::LimitReached(text) => Self::Unavailable(text),
            HostCallError::Unavailable(text) => Self::Unavailable(text.to_owned()),
        }
    }
}
