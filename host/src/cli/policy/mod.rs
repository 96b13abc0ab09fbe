//! `sallyport policy …`: checks, explains and changes the policy.

mod args;
mod change;
mod check;
mod examples;
mod explain;
mod grant;
mod learn;
mod revoke;

use sallyport_contract::PluginName;
use sallyport_runtime::config::ConfigFlags;

pub(super) use self::args::PolicyCommand;
use super::{
    compose,
    exit::{Exit, Failure},
    output::Output,
    watch::Watch,
};

/// Matches any characters in a pattern, and alone every plugin or every tool.
const WILDCARD: &str = "*";

/// Runs the command.
pub(super) fn policy(
    flags: &ConfigFlags,
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
        // Learning starts other commands, each with its own settings and threads.
        PolicyCommand::Learn(args) => learn::learn(flags, args, watch, out),
    }
}

/// The plugins that a change of the policy applies to.
enum Whose {
    /// One plugin.
    One(PluginName),
    /// Every plugin whose name matches a pattern.
    Several(String),
}

impl Whose {
    fn parse(text: &str) -> Result<Self, Failure> {
        match text.contains(WILDCARD) {
            true => Ok(Self::Several(text.to_owned())),
            false => plugin_name(text).map(Self::One),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::One(plugin) => plugin.as_str(),
            Self::Several(pattern) => pattern,
        }
    }

    fn is_everybody(&self) -> bool {
        self.as_str() == WILDCARD
    }

    /// Returns their tools in the notation of rules: one tool, or `*` for all.
    fn tools(&self, tool: &str) -> String {
        match self.is_everybody() && tool == WILDCARD {
            true => WILDCARD.to_owned(),
            false => format!("{}.{tool}", self.as_str()),
        }
    }
}

fn plugin_name(text: &str) -> Result<PluginName, Failure> {
    text.parse().map_err(|error| Failure::new(Exit::Usage, format!("{error}")))
}
