//! `sallyport chat`: a session at the terminal.
//!
//! At a terminal it has a line editor, streamed answers, and cards for approvals. With a pipe or a
//! dumb terminal it works line by line. With `--ui` a plugin replaces both (`cli/listen`).

mod asking;
mod commands;
mod copied;
mod desk;
mod ears;
mod greeting;
mod hearing;
mod lines;
mod lists;
mod person;
mod talk;
mod view;
mod waiting;

use std::io::IsTerminal;

use sallyport_runtime::config::{ConfigFlags, Env};
use sallyport_terminal::screen::OutputCapabilities;

use super::{
    args::ChatArgs,
    exit::{CommandFailure, ExitStatus},
    listen,
    output::CliOutput,
    watch::CallObservers,
};

pub(super) async fn run_chat_command(
    flags: &ConfigFlags,
    args: &ChatArgs,
    watch: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if let Some(ui) = &args.ui {
        return listen::run_ui_chat(flags, args, ui, watch, out).await;
    }
    match detect_look(out) {
        OutputCapabilities::Live(colour) => {
            person::run_interactive_chat(flags, args, watch, colour, out).await
        }
        OutputCapabilities::Plain => lines::run_plain_chat(flags, args, watch, out).await,
    }
}

/// Returns the capabilities that all three streams share.
fn detect_look(out: &CliOutput) -> OutputCapabilities {
    let all = out.stdout_is_terminal && out.stderr_is_terminal && std::io::stdin().is_terminal();
    let env = Env::from_process();
    OutputCapabilities::from_environment(all, env.get("TERM"), env.get("NO_COLOR"))
}
