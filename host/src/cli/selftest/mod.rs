//! `sallyport selftest`: runs everyday sentences through all layers, without a model or a key.
//!
//! The offline matcher reads each sentence, the session and the gate decide about the call, the
//! sandbox runs it, and the audit records it. All of this happens in a temporary home. It uses only
//! those of the user's plugins whose tools the sentences expect.

mod list;
mod report;
mod test_session;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use sallyport_contract::ToolId;
use sallyport_runtime::{
    config::ConfigFlags,
    registry::{PluginLookupError, Registry},
};

use super::{
    args::OutputArgs,
    exit::{CommandFailure, ExitStatus},
    observers::CallObservers,
    output::CliOutput,
};

use list::SentenceList;
use report::SelftestReport;
use test_session::SelftestSession;

/// The test folder in a policy that is only printed.
const EXAMPLE_FOLDER: &str = "/tmp/sallyport-selftest";

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
pub(super) async fn run_selftest_command(
    flags: &ConfigFlags,
    args: &SelftestArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let list = SentenceList::read_or_default(args.file.as_deref())?;
    if args.show_policy {
        out.print_line(list.policy_text(Path::new(EXAMPLE_FOLDER)).trim());
        return Ok(ExitStatus::Done);
    }
    let mut test_session = SelftestSession::new(flags, &list, observers, out).await?;
    let mut report = SelftestReport::new(args.output.output, out);
    for sentence in &list.sentences {
        match find_tool_presence(&test_session.host.registry(), sentence.tool.as_ref()) {
            ToolPresence::Available => match test_session.run_sentence(&sentence.say).await {
                Ok(Some(sentence_result)) => report.report_result(sentence, &sentence_result),
                Ok(None) => {
                    test_session.close(out).await?;
                    return Ok(ExitStatus::Interrupted);
                }
                Err(failure) => {
                    test_session.close(out).await?;
                    return Err(failure);
                }
            },
            ToolPresence::NotInstalled(why) => report.report_skipped(sentence, why),
            ToolPresence::Unusable(why) => report.report_unusable(sentence, why),
        }
    }
    report.finish(&test_session.close(out).await?)
}

/// Whether a tool can be called.
enum ToolPresence {
    Available,
    NotInstalled(String),
    Unusable(String),
}

/// Checks for a tool. A plugin that is not installed is skipped, but an unusable one is a failure.
fn find_tool_presence(registry: &Registry, tool: Option<&ToolId>) -> ToolPresence {
    let Some(tool) = tool else { return ToolPresence::Available };
    if let Err(PluginLookupError::Unknown { message, .. }) =
        registry.find_plugin(tool.plugin.as_str())
    {
        return ToolPresence::NotInstalled(message);
    }
    match registry.find_tool(tool) {
        Ok(_) => ToolPresence::Available,
        Err(
            PluginLookupError::Unknown { message, .. }
            | PluginLookupError::Unusable { message, .. },
        ) => ToolPresence::Unusable(message),
    }
}
