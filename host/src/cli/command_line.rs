//! The command line: its flags and commands, parsed by clap.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use sallyport_runtime::config::ConfigFlags;

use super::{
    acp::AcpArgs,
    approval::ApprovalCommand,
    args::ChatArgs,
    audit::AuditCommand,
    call::CallArgs,
    config::{ConfigCommand, TrustArgs},
    connection::ConnectionCommand,
    doctor::DoctorArgs,
    guided_setup::SetupArgs,
    listen::ListenArgs,
    mcp::McpArgs,
    memory::MemoryCommand,
    model::ModelCommand,
    name_kind::NameKind,
    plugin::PluginCommand,
    policy::PolicyArgs,
    run::RunArgs,
    schema::SchemaSubject,
    secret::SecretCommand,
    selftest::SelftestArgs,
    serve::ServeArgs,
    session::SessionCommand,
    state::StateCommand,
    store::StoreCommand,
    timer::TimerCommand,
    tool::ToolCommand,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

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
