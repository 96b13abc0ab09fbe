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
    exit::{Exit, Failure},
    listen,
    output::Output,
    watch::Watch,
};

pub(super) async fn chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    if let Some(ui) = &args.ui {
        return listen::chat(flags, args, ui, watch, out).await;
    }
    match look(out) {
        OutputCapabilities::Live(colour) => person::chat(flags, args, watch, colour, out).await,
        OutputCapabilities::Passing => lines::chat(flags, args, watch, out).await,
    }
}

/// Returns the capabilities that all three streams share.
fn look(out: &Output) -> OutputCapabilities {
    let all = out.stdout_is_terminal && out.stderr_is_terminal && std::io::stdin().is_terminal();
    let env = Env::from_process();
    OutputCapabilities::from_environment(all, env.get("TERM"), env.get("NO_COLOR"))
}
