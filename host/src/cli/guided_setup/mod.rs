//! `sallyport setup`: a model with its key, and what the installed plugins request.
//!
//! It writes the same `sallyport.toml` and `policy.toml` that a user would write, and shows each
//! change first. Every step can be skipped. Flags answer the questions that need a terminal; at one,
//! it still asks before it writes.

mod key;
mod model;
mod offer;
mod plugins;
mod prompts;
mod provider;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use sallyport_contract::PluginName;
use sallyport_runtime::config::{ConfigFlags, HostSettings};

pub(super) use self::offer::offer_before_chat;
use super::{
    exit::{CommandFailure, ExitStatus},
    name_kind::NameKind,
    output::CliOutput,
    setup,
};

// The answers that are given as flags. What they leave open is asked at a terminal.
#[derive(Debug, Default, ClapArgs)]
pub(super) struct SetupArgs {
    /// The provider of the model: openai, anthropic, gemini, ollama, …
    #[arg(long, value_name = "PROVIDER", add = NameKind::Provider)]
    provider: Option<String>,

    /// The model's name at the provider
    #[arg(long, value_name = "NAME", requires = "provider")]
    model: Option<String>,

    /// The address of the server, if it is not the provider's own
    #[arg(long, value_name = "URL", requires = "provider")]
    base_url: Option<String>,

    /// Take the key from this environment variable, at each start
    #[arg(long, value_name = "VARIABLE", requires = "provider", conflicts_with = "key_from_stdin")]
    key_from_env: Option<String>,

    /// Read the key from standard input, and store it
    #[arg(long, requires = "provider")]
    key_from_stdin: bool,

    /// Where to store the key: in a file for you alone, or in the keyring of the kernel
    #[arg(long, value_enum, value_name = "PLACE", requires = "provider")]
    store_key: Option<KeyStore>,

    /// Do not try the model
    #[arg(long, requires = "provider")]
    no_check: bool,

    /// Grant this plugin what it requests (repeatable)
    #[arg(long, value_name = "PLUGIN", add = NameKind::Plugin)]
    grant_requested: Vec<PluginName>,

    /// The folder for a plugin that requests a folder of your choice
    #[arg(long, value_name = "FOLDER", requires = "grant_requested")]
    folder: Option<PathBuf>,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// A place that keeps a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyStore {
    /// A file that only you can read
    File,
    /// The keyring of the kernel, which forgets when the machine restarts
    Keyring,
}

/// What all steps need.
struct SetupContext<'a> {
    flags: &'a ConfigFlags,
    args: &'a SetupArgs,
    out: &'a CliOutput,
}

/// Whether the user sees the lists and the questions, and can answer them.
fn is_interactive(out: &CliOutput) -> bool {
    out.can_ask && out.stdout_is_terminal
}

/// Runs the command.
pub(super) async fn run_setup_command(
    flags: &ConfigFlags,
    args: &SetupArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let is_answered = args.provider.is_some() || !args.grant_requested.is_empty();
    if !is_answered && !is_interactive(out) {
        let message = "this asks questions, and no terminal is attached";
        let hint = "pass --provider and --model, or --grant-requested PLUGIN";
        return Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint));
    }
    let context = SetupContext { flags, args, out };
    prompts::until_interrupt(run_steps(&context, is_answered)).await?;
    Ok(ExitStatus::Done)
}

async fn run_steps(context: &SetupContext<'_>, is_answered: bool) -> Result<(), CommandFailure> {
    if context.args.provider.is_some() || !is_answered {
        model::set_up_model(context).await?;
    }
    if !context.args.grant_requested.is_empty() {
        plugins::grant_named_plugins(context).await?;
    } else if !is_answered {
        plugins::offer_plugins(context).await?;
        context.out.print_note("`sallyport chat` starts a conversation.");
    }
    Ok(())
}

impl SetupContext<'_> {
    /// Whether a change may be written. Without a terminal, only a change that replaces nothing.
    async fn confirm_change(&self, replaced: &[String]) -> Result<bool, CommandFailure> {
        if self.args.yes {
            return Ok(true);
        }
        if !is_interactive(self.out) {
            return match replaced {
                [] => Ok(true),
                _ => Err(replaces_failure(replaced)),
            };
        }
        let question = match replaced {
            [] => "Write this?".to_owned(),
            _ => format!("Write this? It replaces {}.", replaced.join(" and ")),
        };
        let is_confirmed = prompts::confirm(&question, self.out).await?;
        if !is_confirmed {
            self.out.print_note("Nothing was changed.");
        }
        Ok(is_confirmed)
    }

    fn read_settings(&self) -> Result<HostSettings, CommandFailure> {
        setup::read_settings(self.flags)
    }
}

fn replaces_failure(replaced: &[String]) -> CommandFailure {
    let message = format!("this would replace {}; nothing was changed", replaced.join(" and "));
    CommandFailure::new(ExitStatus::NobodyToAsk, message).with_hint("pass --yes to replace it")
}
