//! The model of a session: the configured choice, ready for use in one session after another.

use std::sync::Arc;

use sallyport_contract::{Secret, mangle::model_tool_name};
use sallyport_model::{ChatModel, ModelEndpoint, OfflineMatcher, ToolReach};
use sallyport_policy::PluginRole;

use super::SessionError;
use crate::{
    config::{ChosenModel, ModelChoice, PluginModelConfig, provider::key_variable_for_url},
    registry::PluginKind,
    roles::{SessionRoles, provider},
};

/// A configured model.
#[derive(Clone)]
pub enum ModelHandle {
    /// A model that any session can use.
    Ready(Arc<dyn ChatModel>),
    /// A model on a server. No text that leaves may contain its key.
    Server {
        /// The model.
        model: Arc<dyn ChatModel>,
        /// Its key, with the name of the key.
        key: Option<(String, Secret)>,
    },
    /// The built-in matcher. It needs to know the effects of the session's tools.
    Offline,
    /// A plugin. It answers on behalf of a session.
    Plugin(Box<PluginModelConfig>),
}

/// Checks that a key is set if the provider requires one. The provider would refuse the request.
///
/// # Errors
///
/// The key is missing.
pub fn check_key(name: &str, key: Option<&Secret>, base_url: &str) -> Result<(), SessionError> {
    match key_variable_for_url(base_url).filter(|_| key.is_none()) {
        None => Ok(()),
        Some(variable) => {
            Err(SessionError::KeyMissing { name: name.to_owned(), variable: variable.to_owned() })
        }
    }
}

impl ModelHandle {
    /// Prepares the configured model. Sends nothing and looks up no plugin.
    ///
    /// # Errors
    ///
    /// The settings are invalid, or a key is missing.
    pub fn from_choice(chosen: &ChosenModel) -> Result<Self, SessionError> {
        match &chosen.choice {
            ModelChoice::Offline { .. } => Ok(Self::Offline),
            ModelChoice::Endpoint(endpoint) => {
                if let (None, Some(problem)) = (&endpoint.key, &chosen.key_problem) {
                    let (name, problem) = (chosen.name.clone(), problem.clone());
                    return Err(SessionError::KeyUnreadable { name, problem });
                }
                check_key(&chosen.name, endpoint.key.as_ref(), &endpoint.base_url)?;
                let model = sallyport_model::connect_model(ModelEndpoint::clone(endpoint))?;
                Ok(Self::Server { model, key: chosen.server_key() })
            }
            ModelChoice::Plugin(plugin) => Ok(Self::Plugin(plugin.clone())),
        }
    }

    /// Returns the model for a session of a user.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, is not a provider, or cannot be used.
    pub fn model_for_session(
        &self,
        roles: &Arc<SessionRoles>,
        user: &str,
        session_id: &str,
    ) -> Result<Arc<dyn ChatModel>, SessionError> {
        match self {
            Self::Ready(model) => Ok(Arc::clone(model)),
            Self::Server { model, key } => {
                roles.registry().gate().add_redacted_keys(key.clone());
                Ok(Arc::clone(model))
            }
            Self::Offline => Ok(Arc::new(offline_matcher(roles))),
            Self::Plugin(settings) => {
                let role_plugin =
                    roles.load_role_plugin(settings.plugin.as_str(), PluginRole::Provider)?;
                Ok(provider::plugin_chat_model(
                    role_plugin,
                    PluginModelConfig::clone(settings),
                    user,
                    session_id,
                ))
            }
        }
    }
}

/// Returns the matcher for the tools of a session. It reads the tools and their effective grants at
/// each message, since the plugins and the policy may change meanwhile.
pub fn offline_matcher(roles: &Arc<SessionRoles>) -> OfflineMatcher {
    let roles = Arc::clone(roles);
    OfflineMatcher::new(Arc::new(move |name: &str| {
        let registry = roles.registry();
        let tool = registry.tools().iter().find(|tool| model_tool_name(&tool.id) == name);
        let entry = tool.and_then(|tool| registry.find_plugin(tool.id.plugin.as_str()).ok());
        // Only a grant bounds a tool, and only in the sandbox. Internal tools are bounded by their
        // code alone.
        let is_harmless = entry.is_some_and(|entry| {
            matches!(entry.kind(), PluginKind::Component | PluginKind::Command)
                && !entry.grant().can_change_or_leak()
        });
        if is_harmless { ToolReach::Nothing } else { ToolReach::ChangesOrLeaks }
    }))
}
