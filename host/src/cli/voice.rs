//! Who answers: the model that was chosen, made ready for one session after another.

use std::sync::Arc;

use sallyport_model::{ChatModel, Endpoint, Offline};
use sallyport_policy::Role;

use super::exit::{Exit, Failure};
use crate::{
    config::{ModelChoice, PluginModel},
    roles::{Roles, provider},
};

/// A model that was chosen.
#[derive(Clone)]
pub(super) enum Voice {
    /// One that answers whichever session asks.
    Ready(Arc<dyn ChatModel>),
    /// A plugin, which answers in the name of the session that asks.
    Plugin(Box<PluginModel>),
}

impl Voice {
    /// Makes ready what was chosen. Nothing is sent yet, and no plugin is looked for.
    ///
    /// # Errors
    ///
    /// Settings that cannot work.
    pub(super) fn of(choice: &ModelChoice) -> Result<Self, Failure> {
        match choice {
            ModelChoice::Offline { .. } => Ok(Self::Ready(Arc::new(Offline))),
            ModelChoice::Endpoint(endpoint) => {
                let model = sallyport_model::connect(Endpoint::clone(endpoint));
                model.map(Self::Ready).map_err(|error| {
                    Failure::new(Exit::Policy, error.to_string()).with_hint(error.hint())
                })
            }
            ModelChoice::Plugin(plugin) => Ok(Self::Plugin(plugin.clone())),
        }
    }

    /// Returns the model for a session.
    ///
    /// # Errors
    ///
    /// There is no such plugin, it is no provider, or it cannot be used.
    pub(super) fn in_session(
        &self,
        roles: &Arc<Roles>,
        session_id: &str,
    ) -> Result<Arc<dyn ChatModel>, Failure> {
        match self {
            Self::Ready(model) => Ok(Arc::clone(model)),
            Self::Plugin(settings) => {
                let player = roles.player(settings.plugin.as_str(), Role::Provider)?;
                Ok(provider::connect(player, PluginModel::clone(settings), session_id))
            }
        }
    }
}
