//! How conversations are held: what flags, a guide and the configuration say together.
//!
//! A flag says it last, then the guide, then the configuration. Every session of one program is held
//! in the same manner.

use std::sync::Arc;

use sallyport_model::connect_embedder;
use sallyport_session::{Limits, Memory, Options, Recall};

use super::{
    args::{BudgetArgs, ModelArgs},
    compose::{self, Tools},
    exit::{Exit, Failure},
    output::Output,
    watch::Watch,
};
use crate::{
    config::{ModelChoice, Settings},
    recall::Memories,
    roles::guide::{Guide, GuideError},
    services::USER,
};

/// How conversations are held.
pub(super) struct Manner {
    /// Who the assistant is, when a plugin says so.
    pub(super) guide: Option<Guide>,
    /// What is said, without the name of a session.
    options: Options,
    /// What finds earlier turns by their meaning, where that is wanted.
    memories: Option<Arc<Memories>>,
}

impl Manner {
    /// Asks the guide, if there is one, and puts together what all say.
    ///
    /// # Errors
    ///
    /// The guide cannot be used, or the store or the model of vectors cannot.
    pub(super) async fn of(
        args: &ModelArgs,
        settings: &Settings,
        tools: &Tools,
        watch: &Watch,
        out: &Output,
    ) -> Result<Self, Failure> {
        let guide = match &settings.chat.guide {
            Some(plugin) => Some(Guide::ask(&tools.roles, plugin).await.map_err(no_guide)?),
            None => None,
        };
        let options = options(args, settings, guide.as_ref());
        let memories = match options.memory {
            Memory::ByMeaning { .. } => Some(memories(settings, watch, out)?),
            _ => None,
        };
        Ok(Self { guide, options, memories })
    }

    /// What is said about one session.
    pub(super) fn options(&self, session_id: &str) -> Options {
        Options { session_id: session_id.to_owned(), ..self.options.clone() }
    }

    /// How much of a conversation the model is shown.
    pub(super) fn memory(&self) -> Memory {
        self.options.memory
    }

    /// What the model knows from the start.
    pub(super) fn known(&self) -> &[String] {
        &self.options.memories
    }

    /// What one session recalls from. Of one that is not kept nothing is remembered.
    pub(super) fn recall(&self, session_id: &str, is_kept: bool) -> Option<Arc<dyn Recall>> {
        self.memories.as_ref().map(|memories| memories.in_session(session_id, is_kept))
    }
}

/// Says also who named the guide: a configuration may have done so long ago.
fn no_guide(error: GuideError) -> Failure {
    let failure = Failure::from(error);
    let names = "--guide names it, or `guide` under [chat] in the configuration";
    let hint = failure.hint.as_ref().map(|hint| format!("{hint}; {names}"));
    failure.with_hint(hint.unwrap_or_else(|| names.to_owned()))
}

fn options(args: &ModelArgs, settings: &Settings, guide: Option<&Guide>) -> Options {
    let Settings { chat, budget, .. } = settings;
    let of_guide = guide.map(|guide| &guide.system_prompt);
    let known = guide.map(|guide| guide.memories.as_slice()).unwrap_or_default();
    let memory = guide.and_then(|guide| guide.memory);
    Options {
        session_id: String::new(),
        system_prompt: args.system.as_ref().or(of_guide).or(chat.system.as_ref()).cloned(),
        memories: [known, &chat.memories].concat(),
        memory: memory.map_or(chat.memory, |kind| chat.memory_of(kind)),
        temperature: guide.and_then(|guide| guide.temperature),
        tool_tokens_max: Some(chat.tool_tokens_max),
        spoken: is_spoken(args, settings),
        limits: limits(&args.budget, budget.turn),
        session_limits: budget.session,
    }
}

/// Whether answers are spoken. The offline matcher has no words of its own: a sentence that the tool
/// gives is the better answer.
fn is_spoken(args: &ModelArgs, settings: &Settings) -> bool {
    args.speak || matches!(settings.model, ModelChoice::Offline { .. })
}

fn limits(args: &BudgetArgs, usual: Limits) -> Limits {
    Limits {
        turns_max: args.max_turns.unwrap_or(usual.turns_max),
        calls_max: args.max_calls.unwrap_or(usual.calls_max),
        tokens_max: args.max_tokens.or(usual.tokens_max),
        cost_max: args.max_cost.or(usual.cost_max),
        time_max: args.timeout.or(usual.time_max),
        ..usual
    }
}

fn memories(settings: &Settings, watch: &Watch, out: &Output) -> Result<Arc<Memories>, Failure> {
    let embedder =
        settings.embedder.as_ref().map(connect_embedder).transpose().map_err(|error| {
            Failure::new(Exit::Policy, error.to_string()).with_hint(error.hint())
        })?;
    Ok(Memories::new(compose::store(settings)?, USER, embedder, watch.warner(out)))
}
