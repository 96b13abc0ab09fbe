//! The capabilities that the plugin contract adds to WASI, one file each: the host's side of an
//! interface in `wit/`, implemented on the part of [`crate::guest::Guest`] that it serves.

mod config;
mod log;
mod secrets;
pub(crate) mod stdio;
mod time;
