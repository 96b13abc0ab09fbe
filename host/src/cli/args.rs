//! The flags and commands, as clap reads them.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use sallyport_contract::PluginName;
use sallyport_model::Cost;
use sallyport_policy::TimeSpan;

use super::{
    config::{ConfigCommand, TrustArgs},
    listen::ListenArgs,
    memory::MemoryCommand,
    model::ModelCommand,
    policy::PolicyCommand,
    run::RunArgs,
    selftest::SelftestArgs,
    session::SessionCommand,
    state::StateCommand,
    timer::TimerCommand,
};
use crate::config::Flags;

/// Gives a language model tools that run as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "sallyport", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 configuration or policy, 4 the provider refused the
credentials, 5 the provider is unreachable, 6 an approval was needed and nobody was there to ask,
7 a tool failed, 8 a budget was reached, 9 a plugin was rejected, 130 interrupted.")]
pub(super) struct Args {
    /// Folder of plugins; may be given several times. Hides the folders named elsewhere
    #[arg(long, global = true, value_name = "DIR")]
    plugin_dir: Vec<PathBuf>,

    /// Configuration file, in place of the user's sallyport.toml
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Policy file, in place of the user's policy.toml
    #[arg(long, global = true, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Show each invocation on standard error: plugin, tool, arguments, decision, time, outcome
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,

    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Talk with a model that can use the tools
    Chat(ChatArgs),
    /// Ask one question and print the answer
    Run(RunArgs),
    /// Run a session that plugins feed: from web hooks, web sockets, standard input
    Listen(ListenArgs),
    /// Call one tool directly, without a model
    Call(CallArgs),
    /// Look at the plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Look at the tools
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Look at the policy, and change it
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Read and check the record of every decision and call
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Look at the models, and check that one can be used
    #[command(subcommand)]
    Model(ModelCommand),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Trust a project's configuration as it is now
    Trust(TrustArgs),
    /// Keep the values of the secrets that the policy names
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Look at the sessions that are kept, and go on with them
    #[command(subcommand)]
    Session(SessionCommand),
    /// Look at the timers and reminders that are set, and cancel them
    #[command(subcommand)]
    Timer(TimerCommand),
    /// Look at what plugins keep, and clear it
    #[command(subcommand)]
    State(StateCommand),
    /// Look at what is remembered of earlier conversations, and forget it
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Print the form of what programs read and write, as a JSON Schema
    Schema {
        /// What
        #[arg(value_enum, default_value_t = SchemaOf::Events)]
        of: SchemaOf,
    },
    /// Check that everything is in place
    Doctor(DoctorArgs),
    /// Say everyday sentences to the tools, without a model, and tell what came of each
    Selftest(SelftestArgs),
    /// Write the manual, a page for each command, into a folder; without one, print its first page
    Man {
        /// The folder; it is made if it is missing
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How to talk to a model; shared by `chat` and `run`.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct ModelArgs {
    /// The model: a [model.NAME] table, PROVIDER/NAME, a name, or offline
    #[arg(short, long, value_name = "NAME")]
    pub(super) model: Option<String>,

    /// Where the model is asked: openai, anthropic, gemini, ollama, …, or plugin:NAME; --model is a
    /// name there
    #[arg(long, value_name = "PROVIDER")]
    pub(super) provider: Option<String>,

    /// Ask for whole answers in place of a stream
    #[arg(long)]
    pub(super) no_stream: bool,

    /// Treat the session as a spoken one: a tool's own sentence ends the turn
    #[arg(long)]
    pub(super) speak: bool,

    /// What the model should be and do
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,

    /// The plugin that says who the assistant is; --system still says it last
    #[arg(long, value_name = "NAME")]
    pub(super) guide: Option<PluginName>,

    #[command(flatten)]
    pub(super) budget: BudgetArgs,
}

/// How much a turn may use; each in place of what the configuration says.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct BudgetArgs {
    /// Model answers per turn, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_turns: Option<u32>,

    /// Tool calls per turn, at most
    #[arg(long, value_name = "N")]
    pub(super) max_calls: Option<u32>,

    /// Tokens read and written per turn, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_tokens: Option<u64>,

    /// Cost per turn in US dollars, at most: 0.50
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(super) max_cost: Option<Cost>,

    /// Time per turn, at most: 90s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
}

/// Which session is talked in; a new one that is kept, unless something else is asked for.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct SessionArgs {
    /// Go on with this session; the start of its id is enough
    #[arg(long, value_name = "ID", conflicts_with_all = ["continue", "ephemeral"])]
    pub(super) session: Option<String>,

    /// Go on with the session that was used last in this folder, or else anywhere
    #[arg(long, conflicts_with = "ephemeral")]
    pub(super) r#continue: bool,

    /// Keep nothing of this session
    #[arg(long)]
    pub(super) ephemeral: bool,
}

/// Files that go with the first message.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct FileArgs {
    /// A file that goes with the first message: text, a picture, a sound; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(super) attach: Vec<PathBuf>,

    /// A recording that goes with the first message
    #[arg(long, value_name = "FILE")]
    pub(super) audio: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ChatArgs {
    /// A plugin that shows the session and answers questions, in place of the terminal
    #[arg(long, value_name = "NAME")]
    pub(super) ui: Option<String>,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    #[command(flatten)]
    pub(super) files: FileArgs,

    #[command(flatten)]
    pub(super) session: SessionArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CallArgs {
    /// The tool
    #[arg(value_name = "PLUGIN.TOOL")]
    pub(super) tool: String,

    /// The arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(super) arguments: String,

    /// Print, in place of a result, the policy text that what was denied would have needed
    #[arg(long)]
    pub(super) emit_needed_grants: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// List the plugins, also those that cannot be used and why
    List(OutputArgs),
    /// Show one plugin: its tools, what it requests, what it is granted
    Show {
        /// The plugin
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Agree to plugins as they are now, after they have changed
    Accept {
        /// The plugins
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolCommand {
    /// List the tools; as JSON, the definitions that a model is given
    List(OutputArgs),
    /// Show one tool with the schema of its arguments
    Show {
        /// The tool
        #[arg(value_name = "PLUGIN.TOOL")]
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Show records, the newest last
    Show(AuditShowArgs),
    /// Check that no record was changed, removed, added or moved
    Verify {
        /// The head that an earlier check returned; the log has to hold it still
        #[arg(long, value_name = "HEX")]
        head: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Remove old records; the rest can be checked as before
    Prune {
        /// 2026-01-31T12:00:00Z, or so long ago: 2160h
        #[arg(long, value_name = "TIME")]
        before: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct AuditShowArgs {
    /// Only records about this plugin
    #[arg(long)]
    pub(super) plugin: Option<String>,
    /// Only records about tools of this name
    #[arg(long)]
    pub(super) tool: Option<String>,
    /// Only calls that ended so: completed, failed, denied, invalid-arguments, timed-out, cancelled
    #[arg(long)]
    pub(super) outcome: Option<String>,
    /// Only decisions that came out so: allow, deny
    #[arg(long)]
    pub(super) decision: Option<String>,
    /// Only records of this kind: decision, call, policy, trouble, checkpoint
    #[arg(long)]
    pub(super) kind: Option<String>,
    /// Only records of this session
    #[arg(long)]
    pub(super) session: Option<String>,
    /// Only records since then: 2026-01-31T12:00:00Z, or so long ago: 90m, 12h
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<String>,
    /// Only records until then
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
    /// At most so many, the newest
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) number: Option<usize>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// List the secrets, where each value lies and whether it is there; never a value
    List(OutputArgs),
    /// Check that every secret has a value, and say what to do about one that has none
    Check {
        /// This secret only
        name: Option<String>,
    },
    /// Read a value from standard input and put it to where the policy says that it is
    Set {
        /// The secret
        name: String,
    },
    /// Remove a value from where the policy says that it is
    Remove {
        /// The secret
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Clone, Copy, ClapArgs)]
pub(super) struct OutputArgs {
    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) output: Format,
}

/// What has a published form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// A line of `run --output jsonl`
    Events,
    /// The answer of `run --output json`
    Result,
    /// The configuration file
    Config,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

impl Args {
    /// The flags that bear on the configuration.
    pub(super) fn flags(&self) -> Flags {
        let model = match &self.command {
            Command::Chat(chat) => Some(&chat.model),
            Command::Run(run) => Some(&run.model),
            Command::Listen(listen) => Some(&listen.model),
            Command::Session(SessionCommand::Resume { model, .. }) => Some(model),
            _ => None,
        };
        Flags {
            plugin_dirs: self.plugin_dir.clone(),
            config: self.config.clone(),
            policy: self.policy.clone(),
            provider: model.and_then(|model| model.provider.clone()),
            model: model.and_then(|model| model.model.clone()),
            guide: model.and_then(|model| model.guide.clone()),
            no_stream: model.is_some_and(|model| model.no_stream),
            folder: None,
        }
    }
}

/// Most dollars that a budget can be written with: more is a slip of the finger, and far from where
/// numbers lose their cents.
const DOLLARS_MAX: f64 = 1e6;

fn dollars(text: &str) -> Result<Cost, String> {
    let amount = text.strip_prefix('$').unwrap_or(text).parse::<f64>();
    match amount {
        Ok(dollars) if dollars > 0.0 && dollars <= DOLLARS_MAX => {
            Ok(Cost { micro_usd: (dollars * 1e6).round() as u64 })
        }
        _ => Err("write an amount of US dollars: 0.50".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(TimeSpan(Duration::ZERO)) => Err("no time at all is too little".to_owned()),
        Ok(TimeSpan(time)) => Ok(time),
        Err(_) => Err("write a whole number and a unit: 1500ms, 10s, 2m, 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn budgets_are_amounts_that_somebody_could_mean() {
        assert_eq!(dollars("0.5"), Ok(Cost { micro_usd: 500_000 }));
        assert_eq!(dollars("$2"), Ok(Cost { micro_usd: 2_000_000 }));
        for no in ["", "0", "-1", "NaN", "inf", "1e300", "two", "1 EUR"] {
            assert!(dollars(no).is_err(), "{no}");
        }
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for no in ["", "0s", "5", "soon"] {
            assert!(duration(no).is_err(), "{no}");
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }
}
