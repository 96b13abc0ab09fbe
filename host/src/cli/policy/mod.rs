//! `sallyport policy …`: shows, checks, explains and changes the policy.

mod args;
pub(super) mod change;
mod check;
mod examples;
mod explain;
mod grant;
mod grant_args;
mod revoke;

use sallyport_contract::PluginName;
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    permissions::all_permissions,
};
use serde_json::json;

use self::args::PolicyCommand;
pub(super) use self::args::{LearnArgs, PolicyArgs};
use super::{
    args::OutputFormat,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    permissions, setup,
};

/// Matches any characters in a pattern, and alone every plugin or every tool.
const WILDCARD: &str = "*";

/// Runs the command. `learn` starts other commands, each with its own settings and threads. It is
/// `policy_learn`, given from outside because those commands stand above this one.
pub(super) fn run_policy_command(
    flags: &ConfigFlags,
    args: &PolicyArgs,
    learn: impl FnOnce(&LearnArgs) -> Result<ExitStatus, CommandFailure>,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = || setup::read_settings(flags);
    let Some(command) = &args.command else {
        let format = args.output.output;
        return setup::run_on_current_thread(print_permissions(&settings()?, format, out));
    };
    match command {
        PolicyCommand::Check(args) => {
            setup::run_on_current_thread(check::run_check_command(&settings()?, args.output, out))
        }
        PolicyCommand::Explain(args) => {
            setup::run_on_current_thread(explain::run_explain_command(&settings()?, args, out))
        }
        PolicyCommand::Test(args) => examples::run_test_command(&settings()?, args.output, out),
        PolicyCommand::Grant(args) => {
            setup::run_on_current_thread(grant::run_grant_command(&settings()?, args, out))
        }
        PolicyCommand::Revoke(args) => revoke::run_revoke_command(&settings()?, args, out),
        PolicyCommand::Learn(args) => learn(args),
    }
}

/// Prints what each plugin may do, one row each.
async fn print_permissions(
    settings: &HostSettings,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let registry = setup::load_compiled_registry(settings, out).await?;
    setup::print_load_problems(&registry, out);
    let plugins = all_permissions(&registry);
    match format {
        OutputFormat::Json => out.print_json(&json!({ "plugins": plugins })),
        OutputFormat::Text if plugins.is_empty() => {
            out.print_note("No plugins found. Choose a folder with --plugin-dir.");
        }
        OutputFormat::Text => {
            let rows: Vec<_> = plugins.iter().map(permissions::table_row).collect();
            out.print_table(&permissions::COLUMNS, &rows);
        }
    }
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

/// The plugins that a change of the policy applies to.
enum PluginTarget {
    /// One plugin.
    One(PluginName),
    /// Every plugin whose name matches a pattern.
    Several(String),
}

impl PluginTarget {
    fn parse(text: &str) -> Result<Self, CommandFailure> {
        match text.contains(WILDCARD) {
            true => Ok(Self::Several(text.to_owned())),
            false => parse_plugin_name(text).map(Self::One),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::One(plugin) => plugin.as_str(),
            Self::Several(pattern) => pattern,
        }
    }

    fn is_all_plugins(&self) -> bool {
        self.as_str() == WILDCARD
    }

    /// Returns their tools in the notation of rules: one tool, or `*` for all.
    fn tool_pattern(&self, tool: &str) -> String {
        match self.is_all_plugins() && tool == WILDCARD {
            true => WILDCARD.to_owned(),
            false => format!("{}.{tool}", self.as_str()),
        }
    }
}

pub(super) fn parse_plugin_name(text: &str) -> Result<PluginName, CommandFailure> {
    text.parse().map_err(|error| CommandFailure::new(ExitStatus::Usage, format!("{error}")))
}
