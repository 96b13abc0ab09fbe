//! What a server has: its models, and whether the one that is set can be used.
//!
//! Both ask the server and change nothing there. [`models`] reads the list in which a provider
//! tells of its models; [`check`] goes the way of a conversation step by step and says at which one
//! it ends.

mod check;
mod list;

use std::borrow::Cow;

pub use check::{Status, Step, check};
pub use list::{Listed, models};

use crate::{chat::ModelError, endpoint::SettingsError};

/// Why there is no list of models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The server did not give it.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl CatalogError {
    /// What the person can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::Settings(error) => error.hint().into(),
            Self::Model(error) => error.hint(),
        }
    }
}
