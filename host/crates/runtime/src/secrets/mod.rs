//! Secrets of plugins: where their values lie, and the one place that holds them.
//!
//! A policy names a secret and says where its value is: in a variable, in a file, in the system's
//! keyring. The [`Vault`] fetches a value when it is first needed and keeps it for the process,
//! together with a redactor that knows every value that was ever fetched. No error, no list and no
//! `Debug` of this module shows a value.

mod error;
mod file;
mod keyring;
pub mod source;
mod value;
mod vault;

pub use error::{Act, Problem, VaultError};
pub use value::{VALUE_BYTES_MAX, value_of};
pub use vault::{Vault, writable};
