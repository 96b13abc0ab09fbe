//! `sallyport selftest`: runs everyday sentences through all layers, without a model or a key.
//!
//! The offline matcher reads each sentence, the session and the gate decide about the call, the
//! sandbox runs it, and the audit records it. All of this happens in a temporary home. It uses only
//! the user's plugins.

mod list;
mod report;
mod stage;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use sallyport_contract::ToolId;
use sallyport_runtime::{
    config::ConfigFlags,
    registry::{PluginLookupError, Registry},
};

use super::{
    args::OutputArgs,
    exit::{Exit, Failure},
    output::Output,
    watch::Watch,
};

use list::List;
use report::Report;
use stage::Stage;

/// The test folder in a policy that is only printed.
const SOME_FOLDER: &str = "/tmp/sallyport-selftest";

#[derive(Debug, ClapArgs)]
pub(super) struct SelftestArgs {
    /// A list of sentences to use instead of the built-in one
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Print the policy of the list, and run nothing
    #[arg(long)]
    show_policy: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub(super) async fn selftest(
    flags: &ConfigFlags,
    args: &SelftestArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let list = List::read(args.file.as_deref())?;
    if args.show_policy {
        out.line(list.policy(Path::new(SOME_FOLDER)).trim());
        return Ok(Exit::Done);
    }
    let mut stage = Stage::new(flags, &list, watch, out).await?;
    let mut report = Report::new(args.output.output, out);
    for sentence in &list.sentences {
        match presence(stage.tools.registry(), sentence.tool.as_ref()) {
            Presence::There => match stage.say(&sentence.say).await? {
                Some(said) => report.said(sentence, &said),
                None => {
                    stage.close(out).await?;
                    return Ok(Exit::Interrupted);
                }
            },
            Presence::NotInstalled(why) => report.skipped(sentence, why),
            Presence::Unusable(why) => report.unusable(sentence, why),
        }
    }
    report.end(&stage.close(out).await?)
}

/// Whether a tool can be called.
enum Presence {
    There,
    NotInstalled(String),
    Unusable(String),
}

/// Checks for a tool. A plugin that is not installed is skipped, but an unusable one is a failure.
fn presence(registry: &Registry, tool: Option<&ToolId>) -> Presence {
    let Some(tool) = tool else { return Presence::There };
    if let Err(PluginLookupError::Unknown { message, .. }) =
        registry.find_plugin(tool.plugin.as_str())
    {
        return Presence::NotInstalled(message);
    }
    match registry.find_tool(tool) {
        Ok(_) => Presence::There,
        Err(
            PluginLookupError::Unknown { message, .. }
            | PluginLookupError::Unusable { message, .. },
        ) => Presence::Unusable(message),
    }
}
