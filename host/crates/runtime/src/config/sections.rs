//! The tables of `sallyport.toml` with fixed keys: `[chat]`, `[budget]`, `[sessions]` and the ones
//! for parts of the program. The comment of each key is its description in the schema.

use std::time::Duration;

use sallyport_contract::PluginName;
use sallyport_policy::TimeSpan;
use sallyport_sandbox::compile::CompileLimits;
use sallyport_session::{
    MemoryMode, SessionLimits, TOOL_TOKENS_MAX, TurnLimits, results::RESULT_BYTES_DEFAULT,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Env, env,
    values::{
        CostLimit, CountLimit, NonblankText, ResultBytes, RetentionTime, TimeLimit, TimeSetting,
        TokenCount,
    },
};

/// Most tokens of a conversation that are sent, where neither `memory_tokens` nor the model's
/// `context_tokens` is set. It fits the smallest models in use, with room for an answer.
const MEMORY_TOKENS: u64 = 24_000;

/// Default limit of recalled text in tokens: a few paragraphs, a small part of any model's context.
const RECALLED_TOKENS: u64 = 2000;

/// Default age at which sessions are deleted.
const RETENTION_DAYS_DEFAULT: u64 = 90;

/// Default number of sessions to keep; far more than a user browses.
const SESSIONS_KEPT_DEFAULT: u32 = 1000;

/// How much of a long conversation is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChatMemoryKind {
    /// Everything is sent.
    None,
    /// The newest turns are sent.
    SlidingWindow,
    /// The newest turns are sent, and a summary of the rest.
    Summary,
    /// The newest turns are sent, and earlier text that is relevant to the last input.
    VectorDb,
}

impl ChatMemoryKind {
    /// All kinds.
    const ALL: [Self; 4] = [Self::None, Self::SlidingWindow, Self::Summary, Self::VectorDb];

    /// The kind with this name.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Its name in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SlidingWindow => "sliding-window",
            Self::Summary => "summary",
            Self::VectorDb => "vector-db",
        }
    }

    /// The names of all kinds.
    pub fn all_names() -> [&'static str; 4] {
        Self::ALL.map(Self::as_str)
    }
}

/// The key bindings of the chat's line editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditMode {
    /// The bindings of emacs and of most shells.
    #[default]
    Emacs,
    /// The bindings of vi.
    Vi,
}

/// The settings of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChatSettings {
    /// The system prompt.
    pub system: Option<NonblankText>,
    /// How much of a long conversation is sent; without it, sliding-window if `context_tokens` or
    /// `memory_tokens` is set, and none otherwise.
    pub memory: Option<ChatMemoryKind>,
    /// Most tokens of a conversation that are sent; without it, three quarters of the model's
    /// `context_tokens`.
    pub memory_tokens: Option<TokenCount>,
    /// Most tokens of text that is recalled for one input, with the memory vector-db.
    pub recalled_tokens: TokenCount,
    /// Facts that the model knows from the start.
    pub memories: Vec<NonblankText>,
    /// The plugin that describes the assistant.
    #[schemars(with = "Option<String>", regex(pattern = "^[a-z][a-z0-9_-]*$"))]
    pub guide: Option<PluginName>,
    /// Most tokens of tool definitions; above this, the model gets a search instead.
    pub tool_tokens_max: TokenCount,
    /// Most bytes of a tool's result that the model reads whole; a longer one is kept, and the model
    /// reads it in parts.
    pub result_bytes_max: ResultBytes,
    /// The key bindings of the line editor.
    pub edit_mode: EditMode,
    /// Whether the model's reasoning is shown.
    pub show_reasoning: bool,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            system: None,
            memory: None,
            memory_tokens: None,
            recalled_tokens: TokenCount(RECALLED_TOKENS),
            memories: Vec::new(),
            guide: None,
            tool_tokens_max: TokenCount(TOOL_TOKENS_MAX),
            result_bytes_max: ResultBytes(RESULT_BYTES_DEFAULT),
            edit_mode: EditMode::default(),
            show_reasoning: false,
        }
    }
}

/// How much a conversation may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// Most answers of the model to one input.
    pub turns: CountLimit,
    /// Most calls for one input.
    pub calls: CountLimit,
    /// Most calls of one tool with the same arguments for one input.
    pub repeats: CountLimit,
    /// Most tokens for one input.
    pub tokens: Option<TokenCount>,
    /// Most US dollars for one input.
    pub cost: Option<CostLimit>,
    /// Longest time for one input.
    pub time: Option<TimeLimit>,
    /// Most tokens for a session.
    pub session_tokens: Option<TokenCount>,
    /// Most US dollars for a session.
    pub session_cost: Option<CostLimit>,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        let TurnLimits { turns_max, calls_max, repeats_max, .. } = TurnLimits::default();
        Self {
            turns: CountLimit(turns_max),
            calls: CountLimit(calls_max),
            repeats: CountLimit(repeats_max),
            tokens: None,
            cost: None,
            time: None,
            session_tokens: None,
            session_cost: None,
        }
    }
}

/// How many sessions are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionRetention {
    /// How long a session is kept after its last use.
    pub keep: RetentionTime,
    /// Most sessions that are kept.
    pub keep_max: CountLimit,
}

impl Default for SessionRetention {
    fn default() -> Self {
        Self {
            keep: RetentionTime::from_days(RETENTION_DAYS_DEFAULT),
            keep_max: CountLimit(SESSIONS_KEPT_DEFAULT),
        }
    }
}

/// Which of the built-in tools are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InternalToolSettings {
    /// Whether the tools for reminders are enabled.
    pub reminder: bool,
}

impl InternalToolSettings {
    /// All of them.
    pub const ALL: Self = Self { reminder: true };
}

impl Default for InternalToolSettings {
    fn default() -> Self {
        Self::ALL
    }
}

/// How web pages are opened.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BrowserSettings {
    /// A program that receives the address, or none; without it, the desktop's browser.
    pub command: Option<NonblankText>,
}

/// Where questions go besides the program that asks.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// A program and its arguments. It receives each question as JSON, and may answer it.
    pub hook: Option<Vec<String>>,
}

/// How pictures are shown in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PictureMode {
    /// As the terminal can, if it is known.
    #[default]
    Auto,
    /// With the graphics protocol of kitty.
    Kitty,
    /// As inline images of iTerm2.
    Iterm2,
    /// With sixels.
    Sixel,
    /// By their type and size only.
    Off,
}

/// What the terminal shows.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TerminalSettings {
    /// How pictures are shown in a chat.
    pub images: PictureMode,
}

/// Where plugins get packages.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PackageSettings {
    /// The address of the package index.
    #[schemars(extend("x-variables" = true))]
    pub index: Option<String>,
}

/// How long a start waits for uncompiled plugins, and how much one compilation may use.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompileSettings {
    /// Longest wait of a start; without it, 2s, and less where plugins are only listed.
    pub wait: Option<TimeSetting>,
    /// Most processor time of one compilation, over all its threads, in whole seconds; without it,
    /// 20s.
    pub cpu_time: Option<TimeSetting>,
}

impl ChatSettings {
    /// Fills in defaults for a model with a context of this size. A conversation gets at most three
    /// quarters of a known size by default; the rest is left for tool definitions and the answer.
    pub(super) fn fill_memory_defaults(&mut self, context_tokens: Option<u64>) {
        let room = context_tokens.map(|tokens| TokenCount((tokens / 4 * 3).max(1)));
        self.memory_tokens = self.memory_tokens.or(room);
        let is_known = self.memory_tokens.is_some();
        let default = if is_known { ChatMemoryKind::SlidingWindow } else { ChatMemoryKind::None };
        self.memory = self.memory.or(Some(default));
    }

    /// How much of a conversation is sent: this kind of memory or the configured one, with the
    /// token limits of this chat.
    pub fn memory_mode(&self, kind: Option<ChatMemoryKind>) -> MemoryMode {
        let tokens_max = self.memory_tokens.map_or(MEMORY_TOKENS, |tokens| tokens.0);
        match kind.or(self.memory).unwrap_or(ChatMemoryKind::None) {
            ChatMemoryKind::None => MemoryMode::None,
            ChatMemoryKind::SlidingWindow => MemoryMode::SlidingWindow { tokens_max },
            ChatMemoryKind::Summary => MemoryMode::Summary { tokens_max },
            ChatMemoryKind::VectorDb => {
                MemoryMode::ByMeaning { tokens_max, recalled_tokens_max: self.recalled_tokens.0 }
            }
        }
    }

    /// Its values, under the keys of the file; null for a limit that the memory does not have.
    pub(super) fn display_values(&self) -> Value {
        let (tokens, recalled_tokens) = match self.memory_mode(None) {
            MemoryMode::None => (None, None),
            MemoryMode::SlidingWindow { tokens_max } | MemoryMode::Summary { tokens_max } => {
                (Some(tokens_max), None)
            }
            MemoryMode::ByMeaning { tokens_max, recalled_tokens_max } => {
                (Some(tokens_max), Some(recalled_tokens_max))
            }
        };
        let mut values = json!(self);
        values["memory_tokens"] = json!(tokens);
        values["recalled_tokens"] = json!(recalled_tokens);
        values
    }
}

impl BudgetSettings {
    /// The limits for one input.
    pub fn turn_limits(&self) -> TurnLimits {
        TurnLimits {
            turns_max: self.turns.0,
            calls_max: self.calls.0,
            repeats_max: self.repeats.0,
            tokens_max: self.tokens.map(|tokens| tokens.0),
            cost_max: self.cost.map(|cost| cost.0),
            time_max: self.time.map(|time| time.0),
        }
    }

    /// The limits for a session.
    pub fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            tokens_max: self.session_tokens.map(|tokens| tokens.0),
            cost_max: self.session_cost.map(|cost| cost.0),
        }
    }

    /// The lower limit of each pair.
    pub(super) fn lower_of(self, other: Self) -> Self {
        fn lower<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.into_iter().chain(b).min()
        }
        Self {
            turns: self.turns.min(other.turns),
            calls: self.calls.min(other.calls),
            repeats: self.repeats.min(other.repeats),
            tokens: lower(self.tokens, other.tokens),
            cost: lower(self.cost, other.cost),
            time: lower(self.time, other.time),
            session_tokens: lower(self.session_tokens, other.session_tokens),
            session_cost: lower(self.session_cost, other.session_cost),
        }
    }
}

impl BrowserSettings {
    /// Applies the environment's override.
    pub(super) fn with_env_override(self, env: &Env) -> Self {
        let command = env.get(env::BROWSER).map(|command| NonblankText(command.to_owned()));
        Self { command: command.or(self.command) }
    }
}

impl CompileSettings {
    /// Applies the environment's override. A value that is not a time is ignored.
    pub(super) fn with_env_override(self, env: &Env) -> Self {
        let named = env.get(env::COMPILE_WAIT).and_then(|text| text.parse::<TimeSpan>().ok());
        Self { wait: named.map(|span| TimeSetting(span.0)).or(self.wait), ..self }
    }

    /// Limits of one compilation.
    pub fn compile_limits(&self) -> CompileLimits {
        let cpu_time = self.cpu_time.map_or(CompileLimits::STANDARD.cpu_time, |time| {
            // The system counts processor time in seconds, and a limit of zero would compile
            // nothing.
            Duration::from_secs(time.0.as_secs().max(1))
        });
        CompileLimits {
            cpu_time,
            time: CompileLimits::STANDARD.time.max(cpu_time * 2),
            ..CompileLimits::STANDARD
        }
    }
}
