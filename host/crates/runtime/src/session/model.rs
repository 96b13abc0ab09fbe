//! Who answers: the model that was chosen, made ready for one session after another.

use std::{collections::HashMap, sync::Arc};

use sallyport_contract::{PluginName, Secret, ToolSpec, Toolbox, mangle::mangle};
use sallyport_model::{ChatModel, Endpoint, Offline, Reach};
use sallyport_policy::Role;

use super::SessionError;
use crate::{
    config::{Chosen, ModelChoice, PluginModel, provider::key_variable_at},
    registry::{Kind, Registry},
    roles::{Roles, provider},
};

/// A model that was chosen.
#[derive(Clone)]
pub enum ModelHandle {
    /// One that answers whichever session asks.
    Ready(Arc<dyn ChatModel>),
    /// The built-in matcher, which has to know what the session's tools can do.
    Offline,
    /// A plugin, which answers in the name of the session that asks.
    Plugin(Box<PluginModel>),
}

/// Checks that the key is there without which a public server answers nobody: what would be sent
/// only to be refused is not sent.
///
/// # Errors
///
/// It is missing.
pub fn check_key(name: &str, key: Option<&Secret>, base_url: &str) -> Result<(), SessionError> {
    match key_variable_at(base_url).filter(|_| key.is_none()) {
        None => Ok(()),
        Some(variable) => {
            Err(SessionError::KeyMissing { name: name.to_owned(), variable: variable.to_owned() })
        }
    }
}

impl ModelHandle {
    /// Makes ready what was chosen. Nothing is sent yet, and no plugin is looked for.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, or a key that is missing.
    pub fn of(chosen: &Chosen) -> Result<Self, SessionError> {
        match &chosen.choice {
            ModelChoice::Offline { .. } => Ok(Self::Offline),
            ModelChoice::Endpoint(endpoint) => {
                check_key(&chosen.name, endpoint.key.as_ref(), &endpoint.base_url)?;
                Ok(Self::Ready(sallyport_model::connect(Endpoint::clone(endpoint))?))
            }
            ModelChoice::Plugin(plugin) => Ok(Self::Plugin(plugin.clone())),
        }
    }

    /// Returns the model for a session.
    ///
    /// # Errors
    ///
    /// There is no such plugin, it is no provider, or it cannot be used.
    pub fn in_session(
        &self,
        roles: &Arc<Roles>,
        session_id: &str,
    ) -> Result<Arc<dyn ChatModel>, SessionError> {
        match self {
            Self::Ready(model) => Ok(Arc::clone(model)),
            Self::Offline => Ok(Arc::new(offline(roles.registry()))),
            Self::Plugin(settings) => {
                let player = roles.player(settings.plugin.as_str(), Role::Provider)?;
                Ok(provider::connect(player, PluginModel::clone(settings), session_id))
            }
        }
    }
}

/// Returns the matcher for the tools of a registry. What a tool can do at worst is asked of the
/// effective grant at each message, because a policy may change meanwhile.
pub fn offline(registry: &Arc<Registry>) -> Offline {
    let plugin_of = |tool: &ToolSpec| (mangle(&tool.id), tool.id.plugin.clone());
    let plugins: HashMap<String, PluginName> = registry.tools().iter().map(plugin_of).collect();
    let registry = Arc::clone(registry);
    Offline::new(Arc::new(move |name: &str| {
        let entry = plugins.get(name).and_then(|plugin| registry.plugin(plugin.as_str()).ok());
        // A grant bounds what runs in the sandbox. What is part of the host is bound by its code alone.
        let is_harmless = entry.is_some_and(|entry| {
            matches!(entry.kind(), Kind::Component | Kind::Command)
                && !entry.grant().can_change_or_leak()
        });
        if is_harmless { Reach::Nothing } else { Reach::ChangesOrLeaks }
    }))
}
