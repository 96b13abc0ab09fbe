//! How conversations are held: what flags, a guide and the configuration say together.
//!
//! A flag says it last, then the guide, then the configuration. Every session of one program is held
//! in the same manner.

use std::{sync::Arc, time::Duration};

use sallyport_model::connect_embedder;
use sallyport_session::{Limits, Memory, Options, Recall};

use super::{SessionError, check_key};
use crate::{
    config::Settings,
    host::{Host, open_store, warnings},
    notice::{HostNotice, NoticeSink},
    recall::Memories,
    roles::guide::Guide,
    services::USER,
};

/// What the caller wants otherwise than the configuration; nothing by default.
#[derive(Debug, Clone, Default)]
pub struct SessionOverrides {
    /// What the model should be and do.
    pub system_prompt: Option<String>,
    /// Whether answers are spoken: a tool's own sentence ends the turn.
    pub spoken: bool,
    /// Most answers of the model in a turn.
    pub turns_max: Option<u32>,
    /// Most calls of tools in a turn.
    pub calls_max: Option<u32>,
    /// Most tokens, read and written, in a turn.
    pub tokens_max: Option<u64>,
    /// Most US dollars in a turn.
    pub cost_max: Option<sallyport_model::Cost>,
    /// Longest turn.
    pub time_max: Option<Duration>,
}

/// How conversations are held.
pub struct SessionConfig {
    /// Who the assistant is, when a plugin says so.
    pub guide: Option<Guide>,
    /// What is said, without the name of a session.
    options: Options,
    /// What finds earlier turns by their meaning, where that is wanted.
    memories: Option<Arc<Memories>>,
}

impl SessionConfig {
    /// Asks the guide, if there is one, and puts together what all say.
    ///
    /// # Errors
    ///
    /// The guide cannot be used, or the store or the model of vectors cannot.
    pub async fn of(
        overrides: &SessionOverrides,
        settings: &Settings,
        host: &Host,
    ) -> Result<Self, SessionError> {
        let guide = match &settings.chat.guide {
            Some(plugin) => Some(Guide::ask(host.roles(), plugin).await?),
            None => None,
        };
        let options = options(overrides, settings, guide.as_ref());
        let memories = match options.memory {
            Memory::ByMeaning { .. } => Some(memories(settings, host.notices())?),
            _ => None,
        };
        Ok(Self { guide, options, memories })
    }

    /// What is said about one session.
    pub fn options(&self, session_id: &str) -> Options {
        Options { session_id: session_id.to_owned(), ..self.options.clone() }
    }

    /// How much of a conversation the model is shown.
    pub fn memory(&self) -> Memory {
        self.options.memory
    }

    /// What the model knows from the start.
    pub fn known(&self) -> &[String] {
        &self.options.memories
    }

    /// What one session recalls from. Of one that is not kept nothing is remembered.
    pub fn recall(&self, session_id: &str, is_kept: bool) -> Option<Arc<dyn Recall>> {
        self.memories.as_ref().map(|memories| memories.in_session(session_id, is_kept))
    }
}

fn options(overrides: &SessionOverrides, settings: &Settings, guide: Option<&Guide>) -> Options {
    let Settings { chat, budget, .. } = settings;
    let of_guide = guide.map(|guide| &guide.system_prompt);
    let known = guide.map(|guide| guide.memories.as_slice()).unwrap_or_default();
    let memory = guide.and_then(|guide| guide.memory);
    Options {
        session_id: String::new(),
        user_id: Some(USER.to_owned()),
        system_prompt: overrides
            .system_prompt
            .as_ref()
            .or(of_guide)
            .or(chat.system.as_ref())
            .cloned(),
        memories: [known, &chat.memories].concat(),
        memory: memory.map_or(chat.memory, |kind| chat.memory_of(kind)),
        temperature: guide.and_then(|guide| guide.temperature),
        tool_tokens_max: Some(chat.tool_tokens_max),
        spoken: overrides.spoken,
        limits: limits(overrides, budget.turn),
        session_limits: budget.session,
    }
}

fn limits(overrides: &SessionOverrides, usual: Limits) -> Limits {
    Limits {
        turns_max: overrides.turns_max.unwrap_or(usual.turns_max),
        calls_max: overrides.calls_max.unwrap_or(usual.calls_max),
        tokens_max: overrides.tokens_max.or(usual.tokens_max),
        cost_max: overrides.cost_max.or(usual.cost_max),
        time_max: overrides.time_max.or(usual.time_max),
        ..usual
    }
}

fn memories(settings: &Settings, notices: &NoticeSink) -> Result<Arc<Memories>, SessionError> {
    let asked = settings.embedder.as_ref().filter(|asked| {
        let key = check_key(&asked.model, asked.key.as_ref(), &asked.base_url);
        key.map_err(|missing| {
            notices(HostNotice::MemoriesByWords { why: missing.to_string(), hint: missing.hint() });
        })
        .is_ok()
    });
    let embedder = asked.map(connect_embedder).transpose()?;
    Ok(Memories::new(
        open_store(settings).map_err(SessionError::NoStore)?,
        USER,
        embedder,
        warnings(notices),
    ))
}
