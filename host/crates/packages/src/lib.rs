//! Pure Python packages from an index: finds them by name and version, verifies the index's digest,
//! unpacks them in memory and caches them.
//!
//! The operator configures the index; none is built in. A guest supplies a name and a version,
//! which are validated before they become part of an address or a path. Only wheels without machine
//! code are accepted (`…-none-any.whl`), and their code is not run here.
//!
//! [`download_file`] fetches one file from an address that the operator names.
//!
//! Suggested reading order: [`PackageIndex`], then `project`, `listing`, `wheel`, `kept`.

mod download;
mod file_download;
mod index;
mod kept;
mod listing;
mod project;
mod wheel;

#[cfg(test)]
mod tests;

pub use file_download::{DownloadError, DownloadRules, download_file};
pub use index::{PackageIndex, PackageIndexError};
