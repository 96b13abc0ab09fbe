//! The configuration of sessions, merged from flags, a guide and the configuration files.
//!
//! Flags take precedence over the guide, and the guide over the configuration files. All sessions
//! of one program share one configuration.

use std::{sync::Arc, time::Duration};

use sallyport_contract::Principal;
use sallyport_model::connect_embedder;
use sallyport_session::{MemoryMode, SessionMemory, SessionOptions, TurnLimits};

use super::{SessionError, check_key};
use crate::{
    config::HostSettings,
    connections::context::{ContextDetail, connection_context},
    host::Host,
    notice::{HostNotice, warning_reporter},
    recall::UserMemories,
    roles::guide::AssistantDefinition,
};

/// Values of the caller that override the configuration. The default overrides nothing.
#[derive(Debug, Clone, Default)]
pub struct SessionOverrides {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Whether answers are spoken. If so, a tool's own sentence ends the turn.
    pub spoken: bool,
    /// Maximum number of model answers in a turn.
    pub turns_max: Option<u32>,
    /// Maximum number of tool calls in a turn.
    pub calls_max: Option<u32>,
    /// Maximum number of tokens, input and output, in a turn.
    pub tokens_max: Option<u64>,
    /// Maximum cost of a turn.
    pub cost_max: Option<sallyport_model::TokenCost>,
    /// Maximum duration of a turn.
    pub time_max: Option<Duration>,
}

/// The configuration of sessions.
pub struct SessionConfig {
    /// The assistant's persona, if a plugin provides one.
    pub guide: Option<AssistantDefinition>,
    /// The merged options, without a session id.
    options: SessionOptions,
    /// Finds earlier turns by their meaning, if enabled.
    memories: Option<Arc<UserMemories>>,
}

impl SessionConfig {
    /// Merges all sources, for sessions of a principal. Calls the guide if one is configured.
    ///
    /// # Errors
    ///
    /// The guide, the store or the embedding model cannot be used.
    pub async fn from_settings(
        overrides: &SessionOverrides,
        settings: &HostSettings,
        host: &Host,
        principal: &Principal,
    ) -> Result<Self, SessionError> {
        let guide = match &settings.chat.guide {
            Some(plugin) => Some(AssistantDefinition::from_guide(host.roles(), plugin).await?),
            None => None,
        };
        let merged = merge_options(overrides, settings, guide.as_ref());
        let accounts = accounts_text(host, &principal.user).await;
        let user_id = Some(principal.user.clone());
        let options = SessionOptions { user_id, accounts, ..merged };
        let memories = match options.memory {
            MemoryMode::ByMeaning { .. } => Some(open_memories(settings, host, &principal.user)?),
            _ => None,
        };
        Ok(Self { guide, options, memories })
    }

    /// Returns the options of one session.
    pub fn session_options(&self, session_id: &str) -> SessionOptions {
        SessionOptions { session_id: session_id.to_owned(), ..self.options.clone() }
    }

    /// Returns how much of a conversation the model receives.
    pub fn memory(&self) -> MemoryMode {
        self.options.memory
    }

    /// Returns the initial memories of the model.
    pub fn initial_memories(&self) -> &[String] {
        &self.options.memories
    }

    /// Returns the recall of one session. If `is_kept` is false, nothing is stored.
    pub fn session_recall(
        &self,
        session_id: &str,
        is_stored: bool,
    ) -> Option<Arc<dyn SessionMemory>> {
        self.memories.as_ref().map(|memories| memories.recall_for_session(session_id, is_stored))
    }
}

/// What the model is told about the user's accounts: those that a plugin needs and that are not
/// connected. If they cannot be listed now, it is told nothing, and the session works without.
async fn accounts_text(host: &Host, user: &str) -> Option<String> {
    let definitions = host.registry().usable_definitions();
    let desk = host.connections().filter(|_| !definitions.is_empty())?;
    let detail = ContextDetail { rules: false, guidance: false };
    let context = connection_context(&desk, user, &definitions, None, detail).await;
    context.ok()?.prompt_text()
}

fn merge_options(
    overrides: &SessionOverrides,
    settings: &HostSettings,
    guide: Option<&AssistantDefinition>,
) -> SessionOptions {
    let HostSettings { chat, budget, .. } = settings;
    let guide_prompt = guide.map(|guide| &guide.system_prompt);
    let guide_memories = guide.map(|guide| guide.memories.as_slice()).unwrap_or_default();
    let memory = guide.and_then(|guide| guide.memory);
    SessionOptions {
        session_id: String::new(),
        user_id: None,
        system_prompt: overrides
            .system_prompt
            .as_ref()
            .or(guide_prompt)
            .or(chat.system.as_ref().map(|text| &text.0))
            .cloned(),
        memories: guide_memories
            .iter()
            .chain(chat.memories.iter().map(|text| &text.0))
            .cloned()
            .collect(),
        accounts: None,
        memory: chat.memory_mode(memory),
        temperature: guide.and_then(|guide| guide.temperature),
        tool_tokens_max: Some(chat.tool_tokens_max.0),
        result_bytes_max: Some(chat.result_bytes_max.0),
        spoken: overrides.spoken,
        limits: merge_limits(overrides, budget.turn_limits()),
        session_limits: budget.session_limits(),
    }
}

fn merge_limits(overrides: &SessionOverrides, defaults: TurnLimits) -> TurnLimits {
    TurnLimits {
        turns_max: overrides.turns_max.unwrap_or(defaults.turns_max),
        calls_max: overrides.calls_max.unwrap_or(defaults.calls_max),
        tokens_max: overrides.tokens_max.or(defaults.tokens_max),
        cost_max: overrides.cost_max.or(defaults.cost_max),
        time_max: overrides.time_max.or(defaults.time_max),
        ..defaults
    }
}

fn open_memories(
    settings: &HostSettings,
    host: &Host,
    user: &str,
) -> Result<Arc<UserMemories>, SessionError> {
    let notices = host.notices();
    let endpoint = settings.embedder.as_ref().filter(|endpoint| {
        let key = check_key(&endpoint.model, endpoint.key.as_ref(), &endpoint.base_url);
        key.map_err(|missing| {
            notices(HostNotice::EmbeddingUnavailable {
                why: missing.to_string(),
                hint: missing.hint(),
            });
        })
        .is_ok()
    });
    let embedder = endpoint.map(connect_embedder).transpose()?;
    Ok(UserMemories::new(host.store().clone(), user, embedder, warning_reporter(notices)))
}
