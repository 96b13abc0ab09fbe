//! `sallyport chat`: a session at the terminal.
//!
//! Where a person sits, it is a conversation with a line editor, an answer that appears as it is
//! written, and cards that ask; where lines come from a pipe or a terminal obeys nothing, it goes
//! line by line. With `--ui` a plugin takes the place of both (`cli/listen`).

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

use sallyport_runtime::config::{Env, Flags};
use sallyport_terminal::screen::Look;

use super::{
    args::ChatArgs,
    exit::{Exit, Failure},
    listen,
    output::Output,
    watch::Watch,
};

pub(super) async fn chat(
    flags: &Flags,
    args: &ChatArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    if let Some(ui) = &args.ui {
        return listen::chat(flags, args, ui, watch, out).await;
    }
    match look(out) {
        Look::Live(colour) => person::chat(flags, args, watch, colour, out).await,
        Look::Passing => lines::chat(flags, args, watch, out).await,
    }
}

/// What all three streams together can show.
fn look(out: &Output) -> Look {
    let all = out.stdout_is_terminal && out.stderr_is_terminal && std::io::stdin().is_terminal();
    let env = Env::of_process();
    Look::of(all, env.get("TERM"), env.get("NO_COLOR"))
}
