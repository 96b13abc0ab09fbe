//! `sallyport chat`: a session at the terminal.
//!
//! At a terminal it has a line editor, streamed answers, and cards for approvals. With a pipe or a
//! dumb terminal it works line by line. With `--ui` a plugin replaces both (`cli/listen`).

mod activity_tracker;
mod approval_questions;
mod approval_router;
mod chat_session;
mod commands;
mod copying_journal;
mod event_view;
mod greeting;
mod inputs;
mod interactive;
mod lists;
mod plain;
mod view;

use std::io::IsTerminal;

use sallyport_runtime::config::{ConfigFlags, Env};
use sallyport_terminal::screen::OutputCapabilities;

use super::{
    args::ChatArgs,
    exit::{CommandFailure, ExitStatus},
    listen,
    observers::CallObservers,
    output::CliOutput,
};

pub(super) async fn run_chat_command(
    flags: &ConfigFlags,
    args: &ChatArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if let Some(ui) = &args.ui {
        return listen::run_ui_chat(flags, args, ui, observers, out).await;
    }
    match detect_look(out) {
        OutputCapabilities::Live(colour) => {
            interactive::run_interactive_chat(flags, args, observers, colour, out).await
        }
        OutputCapabilities::Plain => plain::run_plain_chat(flags, args, observers, out).await,
    }
}

/// Returns the capabilities that all three streams share.
fn detect_look(out: &CliOutput) -> OutputCapabilities {
    let all = out.stdout_is_terminal && out.stderr_is_terminal && std::io::stdin().is_terminal();
    let env = Env::from_process();
    OutputCapabilities::from_environment(all, env.get("TERM"), env.get("NO_COLOR"))
}
