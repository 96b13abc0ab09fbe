//! A plugin as a guide: it defines the assistant of a session.
//!
//! The guide is asked once, before the session starts. The command line overrides it, and it
//! overrides the configuration. Its initial memories are added to those of the configuration.

use std::sync::Arc;

use sallyport_contract::PluginName;
use sallyport_policy::PluginRole;
use sallyport_sandbox::{PluginUnavailable, roles::GuidePersona};

use super::{RoleError, SessionRoles};
use crate::config::ChatMemoryKind;

/// The definition of the assistant. All texts come from the plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantDefinition {
    /// The plugin that defines it.
    pub plugin: PluginName,
    /// The system prompt.
    pub system_prompt: String,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// How much of a long conversation the model receives.
    pub memory: Option<ChatMemoryKind>,
    /// Facts that it knows from the start.
    pub memories: Vec<String>,
}

/// Why a guide cannot be used, for the operator.
#[derive(Debug, thiserror::Error)]
pub enum GuideError {
    /// The plugin cannot play the role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// It does not define the assistant.
    #[error("the guide {plugin} cannot be used: {why}")]
    Unusable {
        /// The plugin.
        plugin: PluginName,
        /// Description of the problem.
        why: String,
    },
    /// It requests a memory policy that does not exist.
    #[error("the guide {plugin} asks for the memory policy {asked:?}, which does not exist")]
    NoSuchMemory {
        /// The plugin.
        plugin: PluginName,
        /// The requested policy.
        asked: String,
    },
}

impl GuideError {
    /// Returns a suggested fix.
    pub fn hint(&self) -> String {
        match self {
            Self::Role(_) => "`sallyport plugin list` shows the plugins and their roles".to_owned(),
            Self::Unusable { plugin, .. } => {
                format!("check [settings.{plugin}], or leave out --guide")
            }
            Self::NoSuchMemory { .. } => {
                format!("the memory policies are {}", ChatMemoryKind::all_names().join(", "))
            }
        }
    }
}

impl AssistantDefinition {
    /// Asks a plugin for the assistant's definition.
    ///
    /// # Errors
    ///
    /// The plugin is not a guide, or its answer is invalid.
    pub async fn from_guide(
        roles: &Arc<SessionRoles>,
        plugin: &PluginName,
    ) -> Result<Self, GuideError> {
        let role_plugin = roles.load_role_plugin(plugin.as_str(), PluginRole::Guide)?;
        let described = role_plugin.plugin().describe_assistant().await;
        let unusable = |why| GuideError::Unusable { plugin: plugin.clone(), why };
        Self::from_persona(plugin, described.map_err(|PluginUnavailable(why)| unusable(why))?)
    }

    fn from_persona(plugin: &PluginName, persona: GuidePersona) -> Result<Self, GuideError> {
        let GuidePersona { system_prompt, temperature, memory_policy, initial_memories } = persona;
        let plugin = plugin.clone();
        if system_prompt.trim().is_empty() {
            let why = "it does not say what the assistant should be".to_owned();
            return Err(GuideError::Unusable { plugin, why });
        }
        let memory = match memory_policy {
            None => None,
            Some(asked) => match ChatMemoryKind::from_name(&asked) {
                Some(kind) => Some(kind),
                None => return Err(GuideError::NoSuchMemory { plugin, asked }),
            },
        };
        let memories = initial_memories.into_iter().filter(|text| !text.trim().is_empty());
        Ok(Self { plugin, system_prompt, temperature, memory, memories: memories.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persona(prompt: &str, memory: Option<&str>) -> GuidePersona {
        GuidePersona {
            system_prompt: prompt.to_owned(),
            temperature: Some(0.5),
            memory_policy: memory.map(str::to_owned),
            initial_memories: vec!["The silver is in the pantry.".to_owned(), " ".to_owned()],
        }
    }

    #[test]
    fn a_persona_is_taken_only_if_all_of_it_can_be() {
        let plugin: PluginName = "butler".parse().unwrap();
        for word in ChatMemoryKind::all_names() {
            let guide = AssistantDefinition::from_persona(&plugin, persona("Be kind.", Some(word)))
                .unwrap();
            assert_eq!(guide.memory.map(ChatMemoryKind::as_str), Some(word));
            assert_eq!(guide.memories, ["The silver is in the pantry."]);
        }
        assert_eq!(
            AssistantDefinition::from_persona(&plugin, persona("Be kind.", None)).unwrap().memory,
            None
        );
        for (persona, want, hint) in [
            (
                persona(" \n", None),
                "does not say what the assistant should be",
                "[settings.butler]",
            ),
            (persona("Be kind.", Some("elephant")), "\"elephant\"", "summary, vector-db"),
            (persona("Be kind.", Some("")), "\"\"", "none, sliding-window"),
        ] {
            let error = AssistantDefinition::from_persona(&plugin, persona).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
            assert!(error.hint().contains(hint), "{}", error.hint());
        }
    }
}
