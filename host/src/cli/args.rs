//! The flags and commands, as clap reads them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::policy::PolicyCommand;
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
    /// Keep the values of the secrets that the policy names
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Check that everything is in place
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How to talk to a model; shared by `chat` and `run`.
#[derive(Debug, ClapArgs)]
pub(super) struct ModelArgs {
    /// The model: a [model.NAME] table, a model name of the OpenAI-compatible endpoint, or offline
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,

    /// Ask for whole answers in place of a stream
    #[arg(long)]
    pub(super) no_stream: bool,

    /// Treat the session as a spoken one: a tool's own sentence ends the turn
    #[arg(long)]
    pub(super) speak: bool,

    /// What the model should be and do
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,

    /// Model answers per turn, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_turns: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RunArgs {
    /// The question; several words are joined. Without any, standard input is read
    #[arg(value_name = "PROMPT")]
    pub(super) prompt: Vec<String>,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    /// End with code 7 when a tool call did not complete, though the model answered
    #[arg(long)]
    pub(super) fail_on_tool_error: bool,

    /// Print, in place of the answer, the policy text that what was denied would have needed
    #[arg(long)]
    pub(super) emit_needed_grants: bool,
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
            _ => None,
        };
        Flags {
            plugin_dirs: self.plugin_dir.clone(),
            config: self.config.clone(),
            policy: self.policy.clone(),
            model: model.and_then(|model| model.model.clone()),
            no_stream: model.is_some_and(|model| model.no_stream),
            folder: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }
}
