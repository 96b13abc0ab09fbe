//! The arguments that several commands share, parsed by clap.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};
use sallyport_contract::PluginName;
use sallyport_model::TokenCost;
use sallyport_policy::TimeSpan;
use sallyport_runtime::session::{SessionOverrides, SessionSelector};

use super::name_kind::NameKind;

// Model options, shared by `chat`, `run`, `listen` and `session resume`.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct ModelArgs {
    /// The model: a [model.NAME] table, PROVIDER/NAME, a name, or offline
    #[arg(short, long, value_name = "NAME", add = NameKind::Model)]
    pub(super) model: Option<String>,

    /// Where the model is asked: openai, anthropic, gemini, ollama, …, or plugin:NAME; --model is a
    /// name there
    #[arg(long, value_name = "PROVIDER", add = NameKind::Provider)]
    pub(super) provider: Option<String>,

    /// Print answers when complete, not word by word
    #[arg(long)]
    pub(super) no_stream: bool,

    /// End the turn with the sentence that a tool gives to be spoken
    #[arg(long)]
    pub(super) speak: bool,

    /// What the model should be and do
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,

    /// The plugin that describes the assistant; --system overrides its prompt
    #[arg(long, value_name = "NAME", add = NameKind::Plugin)]
    pub(super) guide: Option<PluginName>,

    #[command(flatten)]
    pub(super) budget: BudgetArgs,
}

impl From<&ModelArgs> for SessionOverrides {
    fn from(args: &ModelArgs) -> Self {
        let BudgetArgs { max_turns, max_calls, max_tokens, max_cost, timeout } = &args.budget;
        Self {
            system_prompt: args.system.clone(),
            spoken: args.speak,
            turns_max: *max_turns,
            calls_max: *max_calls,
            tokens_max: *max_tokens,
            cost_max: *max_cost,
            time_max: *timeout,
        }
    }
}

impl From<&SessionArgs> for SessionSelector {
    fn from(args: &SessionArgs) -> Self {
        match &args.session {
            Some(id) => Self::Named(id.clone()),
            None if args.r#continue => Self::Latest,
            None if args.ephemeral => Self::Ephemeral,
            None => Self::New,
        }
    }
}

// Budget of a turn. Each value overrides the configuration.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct BudgetArgs {
    /// Most model answers per turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_turns: Option<u32>,

    /// Most tool calls per turn
    #[arg(long, value_name = "N")]
    pub(super) max_calls: Option<u32>,

    /// Most tokens read and written per turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_tokens: Option<u64>,

    /// Highest cost per turn in US dollars, such as 0.50
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(super) max_cost: Option<TokenCost>,

    /// Longest time per turn, such as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
}

// Selects the session. Without any of these flags it is a new one that is kept.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct SessionArgs {
    /// Resume this session; the start of its ID is enough
    #[arg(long, value_name = "ID", conflicts_with_all = ["continue", "ephemeral"], add = NameKind::Session)]
    pub(super) session: Option<String>,

    /// Resume the session used last in this folder, else the last one of all
    #[arg(long, conflicts_with = "ephemeral")]
    pub(super) r#continue: bool,

    /// Do not save the conversation
    #[arg(long)]
    pub(super) ephemeral: bool,
}

// Files to attach to the first message.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct FileArgs {
    /// Attach a file to the first message: text, picture or sound (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(super) attach: Vec<PathBuf>,

    /// Attach a sound to the first message
    #[arg(long, value_name = "FILE")]
    pub(super) audio: Option<PathBuf>,
}

#[derive(Debug, Default, ClapArgs)]
pub(super) struct ChatArgs {
    /// The first message; the chat goes on after its answer
    #[arg(value_name = "PROMPT")]
    pub(super) prompt: Option<String>,

    /// Show the session with this plugin, which also answers approvals, instead of the terminal
    #[arg(long, value_name = "NAME", add = NameKind::Plugin)]
    pub(super) ui: Option<String>,

    /// Answer approvals on a phone in the same network as well, at this address of this machine or at
    /// the one that the network knows
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, conflicts_with = "ui")]
    pub(super) approve_by_phone: Option<Option<std::net::IpAddr>>,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    #[command(flatten)]
    pub(super) files: FileArgs,

    #[command(flatten)]
    pub(super) session: SessionArgs,
}

#[derive(Debug, Clone, Copy, ClapArgs)]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Largest budget in dollars. A larger one is a typing error, and floating-point numbers are exact
/// to the cent far beyond it.
const DOLLARS_MAX: f64 = 1e6;

fn dollars(text: &str) -> Result<TokenCost, String> {
    let amount = text.strip_prefix('$').unwrap_or(text).parse::<f64>();
    match amount {
        Ok(dollars) if dollars > 0.0 && dollars <= DOLLARS_MAX => {
            Ok(TokenCost { micro_usd: (dollars * 1e6).round() as u64 })
        }
        _ => Err("write an amount of US dollars: 0.50".to_owned()),
    }
}

/// Reads how many rows are wanted at most.
pub(super) fn row_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "write a whole number from 1".to_owned())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(TimeSpan(Duration::ZERO)) => Err("the time must be longer than 0".to_owned()),
        Ok(TimeSpan(time)) => Ok(time),
        Err(_) => Err("write a whole number and a unit: 1500ms, 10s, 2m, 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_amounts_that_somebody_could_mean() {
        assert_eq!(dollars("0.5"), Ok(TokenCost { micro_usd: 500_000 }));
        assert_eq!(dollars("$2"), Ok(TokenCost { micro_usd: 2_000_000 }));
        for no in ["", "0", "-1", "NaN", "inf", "1e300", "two", "1 EUR"] {
            assert!(dollars(no).is_err(), "{no}");
        }
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for no in ["", "0s", "5", "soon"] {
            assert!(duration(no).is_err(), "{no}");
        }
    }
}
