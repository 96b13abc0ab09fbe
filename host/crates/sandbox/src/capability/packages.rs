//! `packages`: packages of a language, from the index that the host is configured with.

use std::sync::Arc;

use sallyport_contract::{
    Denial,
    services::{PackageFetchError, PackageFile},
};
use sallyport_policy::{Capability, PackagesGrant};

use super::quote_for_record;
use crate::{
    bindings::v0_1::sallyport::plugin::packages::{Error, File, Host, Release},
    guest::Guest,
};

/// Most patterns of the policy that a refusal lists.
const PATTERNS_LISTED_MAX: usize = 20;

impl Host for Guest {
    async fn releases(&mut self, name: String) -> wasmtime::Result<Result<Vec<Release>, Error>> {
        Ok(self.list_releases(&name).await)
    }

    async fn fetch(
        &mut self,
        name: String,
        version: String,
    ) -> wasmtime::Result<Result<Vec<File>, Error>> {
        Ok(self.fetch_package(&name, &version).await)
    }
}

impl Guest {
    /// The versions that the index has and the grant allows.
    async fn list_releases(&mut self, name: &str) -> Result<Vec<Release>, Error> {
        let grant = self.run_context.current_grant();
        grant.packages().check_name(name).map_err(|denial| {
            let guest_error = denial_error(&denial, grant.packages());
            self.run_context.effect_log.record_refusal(denial);
            guest_error
        })?;
        self.count_package()?;
        let Some(packages) = self.run_context.authorizer().services().packages else {
            return Err(Error::Unavailable("no packages can be fetched here".to_owned()));
        };
        let what = format!("list the versions of {}", quote_for_record(&self.run_context, name));
        let capability_use = self.run_context.effect_log.begin_use(Capability::Packages, what);
        let listed = packages.list_releases(name).await;
        let listed = listed.map_err(|error| {
            capability_use.record_outcome(&format!(": {error}"));
            convert_package_error(error)
        })?;
        // The policy may have changed in the meantime.
        let grant = self.run_context.current_grant();
        let granted = |version: &String| grant.packages().check_version(name, version).is_ok();
        let granted = listed.into_iter().filter(granted);
        Ok(granted.map(|version| Release { version, extra: None }).collect())
    }

    async fn fetch_package(&mut self, name: &str, version: &str) -> Result<Vec<File>, Error> {
        let grant = self.run_context.current_grant();
        grant.packages().check_version(name, version).map_err(|denial| {
            let guest_error = denial_error(&denial, grant.packages());
            self.run_context.effect_log.record_refusal(denial);
            guest_error
        })?;
        self.count_package()?;
        let Some(packages) = self.run_context.authorizer().services().packages else {
            return Err(Error::Unavailable("no packages can be fetched here".to_owned()));
        };
        let what = format!(
            "fetch {} {}",
            quote_for_record(&self.run_context, name),
            quote_for_record(&self.run_context, version)
        );
        let capability_use = self.run_context.effect_log.begin_use(Capability::Packages, what);
        let fetched = packages.fetch_package(name, version).await;
        capability_use.record_outcome(&describe_fetch(&fetched));
        let files = fetched.map_err(convert_package_error)?;
        Ok(files.iter().map(file_to_guest).collect())
    }

    fn count_package(&mut self) -> Result<(), Error> {
        if self.counters.packages.try_count() {
            return Ok(());
        }
        let limit = self.counters.packages.limit_text("packages");
        self.run_context.effect_log.record_limit(limit.clone());
        Err(Error::Unavailable(format!("the limit of {limit} is reached")))
    }
}

/// The refusal for the guest: the reason, and the granted patterns, so that the model does not have
/// to guess.
fn denial_error(denial: &Denial, grant: &PackagesGrant) -> Error {
    let mut patterns: Vec<String> = grant.pattern_texts().take(PATTERNS_LISTED_MAX + 1).collect();
    if patterns.len() > PATTERNS_LISTED_MAX {
        patterns[PATTERNS_LISTED_MAX] = "…".to_owned();
    }
    Error::Denied(match patterns[..] {
        [] => denial.why.clone(),
        _ => format!("{}; granted: {}", denial.why, patterns.join(", ")),
    })
}

fn convert_package_error(error: PackageFetchError) -> Error {
    match error {
        PackageFetchError::NotFound(text) => Error::NotFound(text),
        PackageFetchError::Unavailable(text) => Error::Unavailable(text),
    }
}

fn describe_fetch(fetched: &Result<Arc<[PackageFile]>, PackageFetchError>) -> String {
    match fetched {
        Ok(files) => {
            let bytes: usize = files.iter().map(|file| file.data.len()).sum();
            format!(" ({} files, {bytes} bytes)", files.len())
        }
        Err(error) => format!(": {error}"),
    }
}

fn file_to_guest(file: &PackageFile) -> File {
    File { path: file.path.clone(), data: file.data.clone(), extra: None }
}
