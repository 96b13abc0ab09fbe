//! Why a case could not be run.

use std::io;

use sallyport_contract::NameError;
use sallyport_runtime::{config::ConfigError, host::HostError};
use thiserror::Error;

/// Why a case could not be run.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The temporary home of the case cannot be written.
    #[error("cannot prepare the case: {0}")]
    Files(io::Error),
    /// The case asks for something impossible.
    #[error("{0}")]
    Case(String),
    /// The case names a tool in a form that no tool has.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The settings of the case cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The grant of the case is no policy, or the plugin cannot be used with it.
    #[error("{0}")]
    Host(#[from] HostError),
}
