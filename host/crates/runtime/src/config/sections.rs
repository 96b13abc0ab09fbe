//! The tables of `sallyport.toml` that shape a conversation: `[chat]`, `[budget]`, `[sessions]`.
//!
//! Each is read with every key optional, so that one file can be merged over another. Defaults are
//! filled in afterwards.

use std::time::Duration;

use sallyport_contract::PluginName;
use sallyport_model::TokenCost;
use sallyport_policy::{
    SourceError, TimeSpan,
    document::{TomlItem, TomlSection},
};
use sallyport_session::{MemoryMode, SessionLimits, TOOL_TOKENS_MAX, TurnLimits};
use serde_json::{Map, Value, json};

/// Most tokens of a conversation that are sent, where neither `memory_tokens` nor the model's
/// `context_tokens` is set. It fits the smallest models in use, with room for an answer.
const MEMORY_TOKENS: u64 = 24_000;

/// Default limit of recalled text in tokens: a few paragraphs, a small part of any model's context.
const RECALLED_TOKENS: u64 = 2000;

/// Default age at which sessions are deleted.
const RETENTION_DEFAULT: Duration = Duration::from_secs(90 * DAY_S);

/// Default number of sessions to keep; far more than a user browses.
const SESSIONS_KEPT_DEFAULT: usize = 1000;

const DAY_S: u64 = 24 * 60 * 60;

/// Largest value of a limit on a count. A larger one would not limit anything in practice.
const COUNT_MAX: u32 = 1_000_000;

/// The kinds of memory, as `[chat]` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The names of [`ChatMemoryKind`] in the file.
pub(super) const MEMORY_KINDS: [(&str, ChatMemoryKind); 4] = {
    use ChatMemoryKind::{None, SlidingWindow, Summary, VectorDb};
    [
        (None.as_str(), None),
        (SlidingWindow.as_str(), SlidingWindow),
        (Summary.as_str(), Summary),
        (VectorDb.as_str(), VectorDb),
    ]
};

impl ChatMemoryKind {
    /// The kind with this name.
    pub fn from_name(word: &str) -> Option<Self> {
        MEMORY_KINDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
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
        MEMORY_KINDS.map(|(word, _)| word)
    }
}

/// The key bindings of the chat's line editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditMode {
    /// The bindings of emacs and of most shells.
    #[default]
    Emacs,
    /// The bindings of vi.
    Vi,
}

/// The names of [`EditMode`] in the file.
pub(super) const EDIT_MODES: [(&str, EditMode); 2] =
    [("emacs", EditMode::Emacs), ("vi", EditMode::Vi)];

/// `[chat]`, as written in a file.
#[derive(Debug, Default, Clone)]
pub struct ChatKeys {
    system: Option<String>,
    memory: Option<ChatMemoryKind>,
    memory_tokens: Option<u64>,
    recalled_tokens: Option<u64>,
    memories: Option<Vec<String>>,
    guide: Option<PluginName>,
    tool_tokens_max: Option<u64>,
    edit_mode: Option<EditMode>,
    show_reasoning: Option<bool>,
}

/// The settings of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSettings {
    /// The system prompt.
    pub system: Option<String>,
    /// How much of a conversation is sent.
    pub memory: MemoryMode,
    /// Most tokens of a conversation that are sent, where not all of it is.
    pub memory_tokens: u64,
    /// Most tokens of text that is recalled for one input.
    pub recalled_tokens: u64,
    /// The plugin that describes the assistant.
    pub guide: Option<PluginName>,
    /// Facts that the model should know from the start.
    pub memories: Vec<String>,
    /// Most tokens of tool definitions; above this, the model gets a search instead.
    pub tool_tokens_max: u64,
    /// The key bindings of the line editor.
    pub edit_mode: EditMode,
    /// Whether the model's reasoning is shown.
    pub show_reasoning: bool,
}

/// `[budget]`, as written in a file.
#[derive(Debug, Default, Clone, Copy)]
pub struct BudgetKeys {
    turns: Option<u32>,
    calls: Option<u32>,
    repeats: Option<u32>,
    tokens: Option<u64>,
    cost: Option<TokenCost>,
    time: Option<Duration>,
    session_tokens: Option<u64>,
    session_cost: Option<TokenCost>,
}

/// How much a conversation may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetSettings {
    /// For one input.
    pub turn: TurnLimits,
    /// For a whole session.
    pub session: SessionLimits,
}

/// `[sessions]`, as written in a file.
#[derive(Debug, Default, Clone, Copy)]
pub struct SessionKeys {
    keep: Option<RetentionTime>,
    keep_max: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct RetentionTime(Option<Duration>);

/// How many sessions are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRetention {
    /// How long a session is kept after its last use; forever when absent.
    pub keep: Option<Duration>,
    /// Most sessions that are kept.
    pub keep_max: usize,
}

impl ChatKeys {
    pub(super) fn read_section(table: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        Ok(Self {
            system: table.read_optional("system", TomlItem::read_nonblank_string)?,
            memory: table.read_optional("memory", |item| item.read_choice(&MEMORY_KINDS))?,
            memory_tokens: table.read_optional("memory_tokens", read_token_count)?,
            recalled_tokens: table.read_optional("recalled_tokens", read_token_count)?,
            memories: table
                .read_optional("memories", |item| item.read_list(TomlItem::read_nonblank_string))?,
            guide: table.read_optional("guide", TomlItem::read_parsed)?,
            tool_tokens_max: table.read_optional("tool_tokens_max", read_token_count)?,
            edit_mode: table.read_optional("edit_mode", |item| item.read_choice(&EDIT_MODES))?,
            show_reasoning: table.read_optional("show_reasoning", TomlItem::read_bool)?,
        })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self {
            system: self.system.or(base.system),
            memory: self.memory.or(base.memory),
            memory_tokens: self.memory_tokens.or(base.memory_tokens),
            recalled_tokens: self.recalled_tokens.or(base.recalled_tokens),
            memories: self.memories.or(base.memories),
            guide: self.guide.or(base.guide),
            tool_tokens_max: self.tool_tokens_max.or(base.tool_tokens_max),
            edit_mode: self.edit_mode.or(base.edit_mode),
            show_reasoning: self.show_reasoning.or(base.show_reasoning),
        }
    }

    /// Fills in defaults for a model with a context of this size. A conversation gets at most three
    /// quarters of a known size by default; the rest is left for tool definitions and the answer.
    pub(super) fn with_defaults(self, context_tokens: Option<u64>) -> ChatSettings {
        let room = context_tokens.map(|tokens| tokens / 4 * 3);
        let is_known = self.memory_tokens.is_some() || context_tokens.is_some();
        let defaults = if is_known { ChatMemoryKind::SlidingWindow } else { ChatMemoryKind::None };
        let chat = ChatSettings {
            system: self.system,
            memory: MemoryMode::None,
            memory_tokens: self.memory_tokens.or(room).unwrap_or(MEMORY_TOKENS).max(1),
            recalled_tokens: self.recalled_tokens.unwrap_or(RECALLED_TOKENS),
            guide: self.guide,
            memories: self.memories.unwrap_or_default(),
            tool_tokens_max: self.tool_tokens_max.unwrap_or(TOOL_TOKENS_MAX),
            edit_mode: self.edit_mode.unwrap_or_default(),
            show_reasoning: self.show_reasoning.unwrap_or(false),
        };
        ChatSettings { memory: chat.memory_for_kind(self.memory.unwrap_or(defaults)), ..chat }
    }
}

impl BudgetKeys {
    pub(super) fn read_section(table: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        let count = |item: TomlItem<'_>| item.read_count(1..=COUNT_MAX);
        Ok(Self {
            turns: table.read_optional("turns", count)?,
            calls: table.read_optional("calls", count)?,
            repeats: table.read_optional("repeats", count)?,
            tokens: table.read_optional("tokens", read_token_count)?,
            cost: table.read_optional("cost", read_cost)?,
            time: table.read_optional("time", read_duration)?,
            session_tokens: table.read_optional("session_tokens", read_token_count)?,
            session_cost: table.read_optional("session_cost", read_cost)?,
        })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self {
            turns: self.turns.or(base.turns),
            calls: self.calls.or(base.calls),
            repeats: self.repeats.or(base.repeats),
            tokens: self.tokens.or(base.tokens),
            cost: self.cost.or(base.cost),
            time: self.time.or(base.time),
            session_tokens: self.session_tokens.or(base.session_tokens),
            session_cost: self.session_cost.or(base.session_cost),
        }
    }

    pub(super) fn with_defaults(self) -> BudgetSettings {
        let defaults = TurnLimits::default();
        BudgetSettings {
            turn: TurnLimits {
                turns_max: self.turns.unwrap_or(defaults.turns_max),
                calls_max: self.calls.unwrap_or(defaults.calls_max),
                repeats_max: self.repeats.unwrap_or(defaults.repeats_max),
                tokens_max: self.tokens,
                cost_max: self.cost,
                time_max: self.time,
            },
            session: SessionLimits { tokens_max: self.session_tokens, cost_max: self.session_cost },
        }
    }

    /// Lowers a budget to these numbers, where they are lower.
    pub(super) fn lower_budget(self, budget: BudgetSettings) -> BudgetSettings {
        let BudgetSettings { turn, session } = budget;
        BudgetSettings {
            turn: TurnLimits {
                turns_max: self.turns.map_or(turn.turns_max, |n| n.min(turn.turns_max)),
                calls_max: self.calls.map_or(turn.calls_max, |n| n.min(turn.calls_max)),
                repeats_max: self.repeats.map_or(turn.repeats_max, |n| n.min(turn.repeats_max)),
                tokens_max: lower_limit(self.tokens, turn.tokens_max),
                cost_max: lower_limit(self.cost, turn.cost_max),
                time_max: lower_limit(self.time, turn.time_max),
            },
            session: SessionLimits {
                tokens_max: lower_limit(self.session_tokens, session.tokens_max),
                cost_max: lower_limit(self.session_cost, session.cost_max),
            },
        }
    }
}

/// The lower of two limits, either of which may be absent.
fn lower_limit<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
}

impl BudgetSettings {
    /// Its numbers, under the keys of the file; null for a limit that is not set.
    pub fn display_values(&self) -> Map<String, Value> {
        let Self { turn, session } = self;
        let dollars = |cost: Option<TokenCost>| cost.map(|cost| cost.micro_usd as f64 / 1e6);
        json_map([
            ("turns", json!(turn.turns_max)),
            ("calls", json!(turn.calls_max)),
            ("repeats", json!(turn.repeats_max)),
            ("tokens", json!(turn.tokens_max)),
            ("cost", json!(dollars(turn.cost_max))),
            ("time", json!(turn.time_max.map(format_duration))),
            ("session_tokens", json!(session.tokens_max)),
            ("session_cost", json!(dollars(session.cost_max))),
        ])
    }
}

impl ChatSettings {
    /// A kind of memory, with the token limits of this chat.
    pub fn memory_for_kind(&self, kind: ChatMemoryKind) -> MemoryMode {
        let (tokens_max, recalled_tokens_max) = (self.memory_tokens, self.recalled_tokens);
        match kind {
            ChatMemoryKind::None => MemoryMode::None,
            ChatMemoryKind::SlidingWindow => MemoryMode::SlidingWindow { tokens_max },
            ChatMemoryKind::Summary => MemoryMode::Summary { tokens_max },
            ChatMemoryKind::VectorDb => MemoryMode::ByMeaning { tokens_max, recalled_tokens_max },
        }
    }

    /// Its values, under the keys of the file.
    pub fn display_values(&self) -> Map<String, Value> {
        let (kind, memory_tokens, recalled_tokens) = match self.memory {
            MemoryMode::None => (ChatMemoryKind::None, None, None),
            MemoryMode::SlidingWindow { tokens_max } => {
                (ChatMemoryKind::SlidingWindow, Some(tokens_max), None)
            }
            MemoryMode::Summary { tokens_max } => (ChatMemoryKind::Summary, Some(tokens_max), None),
            MemoryMode::ByMeaning { tokens_max, recalled_tokens_max } => {
                (ChatMemoryKind::VectorDb, Some(tokens_max), Some(recalled_tokens_max))
            }
        };
        json_map([
            ("system", json!(self.system)),
            ("guide", json!(self.guide)),
            ("memory", json!(kind.as_str())),
            ("memory_tokens", json!(memory_tokens)),
            ("recalled_tokens", json!(recalled_tokens)),
            ("memories", json!(self.memories)),
            ("tool_tokens_max", json!(self.tool_tokens_max)),
            ("edit_mode", json!(word_for_value(&EDIT_MODES, self.edit_mode))),
            ("show_reasoning", json!(self.show_reasoning)),
        ])
    }
}

impl SessionRetention {
    /// Its values, under the keys of the file.
    pub fn display_values(&self) -> Map<String, Value> {
        let days = |keep: Duration| match keep.as_secs() % DAY_S {
            0 => format!("{}d", keep.as_secs() / DAY_S),
            _ => format_duration(keep),
        };
        let keep = self.keep.map_or("forever".to_owned(), days);
        json_map([("keep", json!(keep)), ("keep_max", json!(self.keep_max))])
    }
}

fn json_map<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The name of a value in the file.
fn word_for_value<T: PartialEq>(words: &[(&'static str, T)], value: T) -> Option<&'static str> {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| *word)
}

/// A duration, as the file writes it.
pub fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if time.subsec_millis() > 0 {
        return format!("{}ms", time.as_millis());
    }
    match seconds {
        hours if hours > 0 && hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes > 0 && minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    }
}

impl SessionKeys {
    pub(super) fn read_section(table: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        Ok(Self {
            keep: table.read_optional("keep", read_retention_time)?,
            keep_max: table.read_optional("keep_max", |item| item.read_count(1..=COUNT_MAX))?,
        })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self { keep: self.keep.or(base.keep), keep_max: self.keep_max.or(base.keep_max) }
    }

    pub(super) fn with_defaults(self) -> SessionRetention {
        SessionRetention {
            keep: self.keep.map_or(Some(RETENTION_DEFAULT), |RetentionTime(keep)| keep),
            keep_max: self.keep_max.map_or(SESSIONS_KEPT_DEFAULT, |most| most as usize),
        }
    }
}

/// Reads a number of tokens, at least 1.
pub(super) fn read_token_count(item: TomlItem<'_>) -> Result<u64, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let number = u64::try_from(item.read_integer()?).ok().filter(|number| *number > 0);
    number.ok_or_else(|| place.into_error(format!("{label} must be a number of tokens from 1 up")))
}

/// Reads a finite number from 0 up, which may have a fraction.
pub(super) fn read_amount(item: TomlItem<'_>) -> Result<f64, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let number = item.read_json()?.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| place.into_error(format!("{label} must be a number from 0 up")))
}

fn read_cost(item: TomlItem<'_>) -> Result<TokenCost, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    // Less than a millionth of a dollar cannot be counted, and a limit of 0 would stop everything.
    let micro_usd = (read_amount(item)? * 1e6).floor() as u64;
    match micro_usd {
        0 => Err(place
            .into_error(format!("{label} is no amount that can be spent"))
            .with_hint("write US dollars, such as 0.50")),
        micro_usd => Ok(TokenCost { micro_usd }),
    }
}

/// Reads a duration above zero.
pub(super) fn read_duration(item: TomlItem<'_>) -> Result<Duration, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let TimeSpan(time) = item.read_time_span()?;
    match time.is_zero() {
        true => Err(place.into_error(format!("{label} must be longer than 0"))),
        false => Ok(time),
    }
}

/// Reads a duration that may be in days, or `forever`.
fn read_retention_time(item: TomlItem<'_>) -> Result<RetentionTime, SourceError> {
    let place = item.place();
    let text = item.read_string()?;
    if text == "forever" {
        return Ok(RetentionTime(None));
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let time = match days {
        Some(days) => Ok(TimeSpan(Duration::from_secs(u64::from(days) * DAY_S))),
        None => text.parse::<TimeSpan>(),
    };
    let hint = "write days or hours, such as 90d or 12h, or forever";
    match time {
        // With a zero age, every session would be too old immediately.
        Ok(TimeSpan(time)) if time.is_zero() => {
            Err(place.into_error("\"keep\" must be longer than nothing").with_hint(hint))
        }
        Ok(TimeSpan(time)) => Ok(RetentionTime(Some(time))),
        Err(mistake) => Err(place.into_hinted_error(&mistake).with_hint(hint)),
    }
}
