//! The command line: its flags and commands, parsed by clap.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use sallyport_contract::PluginName;
use sallyport_model::TokenCost;
use sallyport_policy::TimeSpan;
use sallyport_runtime::{
    config::ConfigFlags,
    session::{SessionOverrides, SessionSelector},
};

use super::{
    acp::AcpArgs,
    approval::ApprovalCommand,
    audit::AuditCommand,
    config::{ConfigCommand, TrustArgs},
    connection::ConnectionCommand,
    guided_setup::SetupArgs,
    listen::ListenArgs,
    mcp::McpArgs,
    memory::MemoryCommand,
    model::ModelCommand,
    name_kind::NameKind,
    plugin::PluginCommand,
    policy::PolicyArgs,
    run::RunArgs,
    selftest::SelftestArgs,
    serve::ServeArgs,
    session::SessionCommand,
    state::StateCommand,
    store::StoreCommand,
    timer::TimerCommand,
};

/// Gives a language model tools that run as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "sallyport", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 configuration or policy, 4 the provider refused the \
credentials, 5 the provider is unreachable, 6 an approval was needed and no user could be asked, \
7 a tool failed, 8 a budget was reached, 9 a plugin was rejected, 10 the audit could not be written, \
130 interrupted.")]
pub(super) struct CliArgs {
    /// Folder of plugins (repeatable); replaces all other plugin folders
    #[arg(long, global = true, value_name = "DIR")]
    plugin_dir: Vec<PathBuf>,

    /// Configuration file to use instead of your sallyport.toml
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Policy file to use instead of your policy.toml
    #[arg(long, global = true, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Print each call to standard error: plugin, tool, arguments, decision, time, outcome; with
    /// doctor, show every check
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,

    /// Write how long each step took to this new file, for a trace viewer such as Perfetto
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) trace: Option<PathBuf>,

    /// Without a command, a terminal gets a chat
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
}

// To define every command takes as long as the rest of a short one, so each is defined when it is
// used (`defer`). Its description is then the comment of its variant only if the struct of its
// arguments has none, so these have ordinary comments.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum CliCommand {
    /// Chat with a model that can use your tools
    Chat(ChatArgs),
    /// Ask one question and print the answer
    Run(RunArgs),
    /// Run a session with input from webhooks, WebSockets or standard input
    Listen(ListenArgs),
    /// Call one tool directly, without a model
    Call(CallArgs),
    /// Serve the tools to an MCP client, such as an editor; add, list and check MCP servers
    Mcp(McpArgs),
    /// Serve sessions to an editor that speaks the Agent Client Protocol
    Acp(AcpArgs),
    /// Serve sessions, tools and approvals to many users over HTTP; manage their tokens
    Serve(ServeArgs),
    /// List, inspect and accept plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// List, inspect and check tools
    #[command(subcommand)]
    Tool(ToolCommand),
    /// List, show and answer the questions of other programs that run
    #[command(subcommand)]
    Approval(ApprovalCommand),
    /// Show what each plugin may do; check, explain and change the policy
    Policy(PolicyArgs),
    /// Show, report, verify and prune the audit of every decision and call
    #[command(subcommand)]
    Audit(AuditCommand),
    /// List models, and check that one works
    #[command(subcommand)]
    Model(ModelCommand),
    /// Show the configuration, and where its files are
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Trust the configuration of a project
    Trust(TrustArgs),
    /// List, check, set and remove the values of secrets
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Connect accounts at outside services; list, show, refresh and remove them
    #[command(subcommand)]
    Connection(ConnectionCommand),
    /// List, show, search, resume, fork, export and remove sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// List and cancel timers and reminders
    #[command(subcommand)]
    Timer(TimerCommand),
    /// List, print and clear the state of plugins
    #[command(subcommand)]
    State(StateCommand),
    /// Move everything that is kept into a PostgreSQL database
    #[command(subcommand)]
    Store(StoreCommand),
    /// List, search and delete memories of earlier conversations
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Print the JSON Schema of events, results or the configuration
    Schema {
        /// What
        #[arg(value_enum, default_value_t = SchemaSubject::Events)]
        of: SchemaSubject,
    },
    /// Choose a model, store its key and grant plugins what they request
    Setup(SetupArgs),
    /// Check configuration, policy, plugins, sandbox and store
    Doctor(DoctorArgs),
    /// Run sample sentences through the installed tools (no model needed)
    Selftest(SelftestArgs),
    /// Write the manual pages to a folder, or print the first one
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
    /// Explain a command, or a topic: grants, models, plugins, scripts
    Help {
        /// The command or the topic
        #[arg(value_name = "COMMAND|TOPIC", add = NameKind::HelpTopic)]
        words: Vec<String>,
    },
}

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

#[derive(Debug, ClapArgs)]
pub(super) struct CallArgs {
    /// The tool
    #[arg(value_name = "PLUGIN.TOOL", add = NameKind::Tool)]
    pub(super) tool: String,

    /// The arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(super) arguments: String,

    /// Print the policy that denied calls need, instead of a result
    #[arg(long)]
    pub(super) emit_needed_grants: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ToolCommand {
    /// List the tools; with --output json, the definitions that a model gets
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Check a call without making it: its arguments, its plugin's rules and the policy
    Check {
        /// The tool
        #[arg(value_name = "PLUGIN.TOOL", add = NameKind::Tool)]
        name: String,
        /// The arguments, as a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one tool with the schema of its arguments
    Show {
        /// The tool
        #[arg(value_name = "PLUGIN.TOOL", add = NameKind::Tool)]
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum SecretCommand {
    /// List the secrets, where their values are, and which are missing; never prints a value
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Check that every secret has a value
    Check {
        /// This secret only
        #[arg(add = NameKind::Secret)]
        name: Option<String>,
    },
    /// Store a value from standard input in the place that the policy names
    Set {
        /// The secret
        #[arg(add = NameKind::Secret)]
        name: String,
    },
    /// Remove a value from the place that the policy names
    #[command(visible_alias = "rm")]
    Remove {
        /// The secret
        #[arg(add = NameKind::Secret)]
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
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,
}

/// Data formats with a published schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaSubject {
    /// A line of `run --output jsonl`
    Events,
    /// The answer of `run --output json`
    Result,
    /// The configuration file
    Config,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

impl CliArgs {
    /// Returns the flags that affect the configuration.
    pub(super) fn config_flags(&self) -> ConfigFlags {
        let model = match &self.command {
            Some(CliCommand::Chat(chat)) => Some(&chat.model),
            Some(CliCommand::Run(run)) => Some(&run.model),
            Some(CliCommand::Listen(listen)) => Some(&listen.model),
            Some(CliCommand::Acp(acp)) => Some(&acp.model),
            Some(CliCommand::Serve(serve)) => Some(&serve.model),
            Some(CliCommand::Session(SessionCommand::Resume { model, .. })) => Some(model),
            _ => None,
        };
        ConfigFlags {
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
    use clap::CommandFactory;

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

    #[test]
    fn the_definition_is_sound() {
        CliArgs::command().debug_assert();
    }

    /// A comment on a struct of arguments would replace the description that the list shows.
    #[test]
    fn a_command_that_is_used_keeps_its_description() {
        let mut complete = CliArgs::command();
        complete.build();
        check_descriptions(&complete, &["sallyport"]);
    }

    #[track_caller]
    fn check_descriptions(command: &clap::Command, path: &[&str]) {
        // This defines the commands up to the last word of the path, and lists those below it.
        let words = path.iter().copied().chain(["--help"]);
        let help = CliArgs::command().try_get_matches_from(words).unwrap_err().to_string();
        for command in command.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let start: String = about.chars().take(30).collect();
            assert!(!start.is_empty() && help.contains(&start), "{path:?} {about:?}: {help}");
            check_descriptions(command, &[path, &[command.get_name()]].concat());
        }
    }
}
