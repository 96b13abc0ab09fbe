//! Secrets of plugins: where their values lie, and the one place that holds them.
//!
//! A policy names a secret and says where its value is: in a variable, in a file, in the system's
//! keyring. The [`Vault`] fetches all of them before anything is sent, shown or stored that could hold
//! one, and again when they change, and keeps a redactor that knows every value that was ever fetched. No error, no list and no
//! `Debug` of this module shows a value.

mod error;
mod fetch;
mod file;
mod keyring;
pub mod source;
mod value;
mod vault;

pub use error::{Act, Problem, VaultError};
pub use value::{VALUE_BYTES_MAX, value_of};
pub use vault::{FETCH_TIME_MAX, Remark, Vault, writable};
