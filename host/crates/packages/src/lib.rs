//! Pure Python packages from an index: finds them by name and version, verifies the index's digest,
//! unpacks them in memory and caches them.
//!
//! The operator configures the index; none is built in. A guest supplies a name and a version,
//! which are validated before they become part of an address or a path. Only wheels without machine
//! code are accepted (`…-none-any.whl`), and their code is not run here.
//!
//! Suggested reading order: [`PackageIndex`], then `project`, `listing`, `wheel`, `kept`.

mod download;
mod index;
mod kept;
mod listing;
mod project;
mod wheel;

#[cfg(test)]
mod tests;

pub use index::{PackageIndex, PackageIndexError};
