//! A server's models, and whether the configured one can be used.
//!
//! Neither changes anything on the server. [`list_models`] reads the provider's list of
//! list_models; [`check_endpoint`] follows the steps of a conversation and reports the one that
//! fails.

mod check;
mod list;

use std::borrow::Cow;

pub use check::{ModelCheckStatus, ModelCheckStep, check_endpoint};
pub use list::{CatalogModel, list_models};

use crate::{chat::ModelError, endpoint::EndpointSettingsError};

/// Why there is no list of models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelCatalogError {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] EndpointSettingsError),
    /// The server gave no list.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl ModelCatalogError {
    /// Returns how the user can fix it.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::Settings(error) => error.hint().into(),
            Self::Model(error) => error.hint(),
        }
    }
}
