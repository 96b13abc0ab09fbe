//! Plugins' secrets: the sources of their values, and the vault that stores them.
//!
//! A policy names a secret and the source of its value: a variable, a file, or the system's
//! keyring. The [`Vault`] fetches all values before anything that could contain one is sent, shown
//! or stored, and fetches them again when they change. It maintains a redactor that knows every
//! value fetched so far. No error, list or `Debug` output of this module contains a value.

mod error;
mod fetch;
mod file;
mod keyring;
pub mod source;
mod value;
mod vault;

pub use error::{SecretAction, SecretProblem, VaultError};
use std::path::Path;
pub use value::{VALUE_BYTES_MAX, parse_secret_value};

use sallyport_contract::Secret;

pub use vault::{FETCH_TIME_MAX, SecretRemark, Vault, check_writable};

/// Returns the value in a private file.
///
/// # Errors
///
/// The file is missing, is not private, or has no value.
pub(crate) fn read_secret_file(path: &Path) -> Result<Secret, SecretProblem> {
    file::read(path)
}
