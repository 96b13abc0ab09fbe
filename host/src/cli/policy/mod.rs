//! `sallyport policy …`: what the policy says, why it says so, and how to change it.

mod args;
mod change;
mod check;
mod examples;
mod explain;
mod grant;
mod learn;
mod revoke;

use sallyport_contract::PluginName;

pub(super) use self::args::PolicyCommand;
use super::{
    compose,
    exit::{Exit, Failure},
    output::Output,
    watch::Watch,
};
use crate::config::Flags;

/// Runs the command.
pub(super) fn policy(
    flags: &Flags,
    command: &PolicyCommand,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = || compose::settings(flags);
    match command {
        PolicyCommand::Check(args) => {
            compose::on_this_thread(check::check(&settings()?, args.output, out))
        }
        PolicyCommand::Explain(args) => {
            compose::on_this_thread(explain::explain(&settings()?, args, out))
        }
        PolicyCommand::Test(args) => examples::test(&settings()?, args.output, out),
        PolicyCommand::Grant(args) => {
            compose::on_this_thread(grant::grant(&settings()?, args, out))
        }
        PolicyCommand::Revoke(args) => revoke::revoke(&settings()?, args, out),
        // It runs other commands, each with settings and threads of its own.
        PolicyCommand::Learn(args) => learn::learn(flags, args, watch, out),
    }
}

/// The tools of a plugin as a rule names them: one, or `*` for all.
fn tools_of(plugin: &PluginName, tool: &str) -> String {
    format!("{plugin}.{tool}")
}

fn plugin_name(text: &str) -> Result<PluginName, Failure> {
    text.parse().map_err(|error| Failure::new(Exit::Usage, format!("{error}")))
}
