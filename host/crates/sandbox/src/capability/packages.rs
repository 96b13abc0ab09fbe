//! `packages`: packages of a language, from the index of the host's configuration.

use std::sync::Arc;

use sallyport_contract::services::{PackageError, PackageFile};
use sallyport_policy::Capability;

use super::named;
use crate::{
    bindings::v0_1::sallyport::plugin::packages::{Error, File, Host},
    guest::Guest,
};

impl Host for Guest {
    async fn fetch(
        &mut self,
        name: String,
        version: String,
    ) -> wasmtime::Result<Result<Vec<File>, Error>> {
        Ok(self.fetch_package(&name, &version).await)
    }
}

impl Guest {
    async fn fetch_package(&mut self, name: &str, version: &str) -> Result<Vec<File>, Error> {
        self.case.grant().packages().check(name, version).map_err(|denial| {
            let told = Error::Denied(denial.why.clone());
            self.case.ledger.refused(denial);
            told
        })?;
        self.count_package()?;
        let Some(packages) = self.case.warden().services().packages else {
            return Err(Error::Unavailable("no packages can be fetched here".to_owned()));
        };
        let what = format!("fetch {} {}", named(name), named(version));
        let going_on = self.case.ledger.using(Capability::Packages, what);
        let fetched = packages.fetch(name, version).await;
        going_on.ended(&told(&fetched));
        let files = fetched.map_err(|error| match error {
            PackageError::NotFound(text) => Error::NotFound(text),
            PackageError::Unavailable(text) => Error::Unavailable(text),
        })?;
        Ok(files.iter().map(file).collect())
    }

    fn count_package(&mut self) -> Result<(), Error> {
        if self.uses.packages.take() {
            return Ok(());
        }
        let limit = self.uses.packages.limit("packages");
        self.case.ledger.limit_reached(limit.clone());
        Err(Error::Unavailable(format!("the limit of {limit} is reached")))
    }
}

fn told(fetched: &Result<Arc<[PackageFile]>, PackageError>) -> String {
    match fetched {
        Ok(files) => {
            let bytes: usize = files.iter().map(|file| file.data.len()).sum();
            format!(" ({} files, {bytes} bytes)", files.len())
        }
        Err(error) => format!(": {error}"),
    }
}

fn file(file: &PackageFile) -> File {
    File { path: file.path.clone(), data: file.data.clone() }
}
