//! `sallyport chat`: a session at the terminal.
//!
//! At a terminal it has a line editor, streamed answers, and cards for approvals. With a pipe or a
//! dumb terminal it works line by line. With `--ui` a plugin replaces both (`cli/listen`).

mod activity_tracker;
mod approval_questions;
mod call_details;
mod chat_session;
mod commands;
mod connect;
mod event_view;
mod form_questions;
mod greeting;
mod inputs;
mod interactive;
mod lists;
mod phone;
mod pictures;
mod plain;
mod typing_ahead;
mod undo;
mod view;

use std::io::IsTerminal;

use sallyport_runtime::config::{ConfigFlags, Env};
use sallyport_terminal::style::ColourMode;

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
    // Both cursor and keys are needed, so all three streams have to be a terminal.
    let all = out.stdout_is_terminal && out.stderr_is_terminal && std::io::stdin().is_terminal();
    let env = Env::from_process();
    match ColourMode::from_environment(all, env.get("TERM"), env.get("NO_COLOR")) {
        Some(colour) => {
            interactive::run_interactive_chat(flags, args, observers, colour, out).await
        }
        None => plain::run_plain_chat(flags, args, observers, out).await,
    }
}
