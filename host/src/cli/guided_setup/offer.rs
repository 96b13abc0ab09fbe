//! The offer of the guided setup, before the first chat of a user who has no model yet.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use sallyport_runtime::{
    atomic_file,
    config::{ConfigFlags, Env, HostPaths, HostSettings, ModelChoice},
};

use super::{
    SetupArgs, SetupContext, is_interactive, model, plugins,
    prompts::{self, TypedAnswer},
};
use crate::cli::{
    args::ChatArgs,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// The file that remembers that the offer was made.
const OFFERED_FILE: &str = "setup-offered";

/// Offers the setup at a terminal if no model is configured, once. Returns an exit code if the
/// program has to end before the chat.
pub(in crate::cli) async fn offer_before_chat(
    flags: &ConfigFlags,
    chat: &ChatArgs,
    out: &CliOutput,
) -> Result<Option<ExitStatus>, CommandFailure> {
    let Some(file) = offer_file(flags, chat, out) else { return Ok(None) };
    let question = "No model is set up yet. Set one up now? Enter for yes, n for not now: ";
    // Ctrl-C ends the program here as the system does it, because a handler would stay installed
    // and keep the chat from being interrupted while it starts.
    let answer = match prompts::ask_line(question, out).await {
        Ok(answer) => answer,
        Err(failure) => return Ok(Some(out.print_failure(&failure))),
    };
    if let Err(error) = remember_offer(&file) {
        let file = file.display();
        out.print_warning(&format!("this question will come again: cannot write {file}: {error}"));
    }
    let is_accepted = match answer {
        TypedAnswer::Words(words) => prompts::is_yes(&words),
        TypedAnswer::Blank => true,
        TypedAnswer::Skip => false,
    };
    if !is_accepted {
        out.print_note("`sallyport setup` does it later.");
        return Ok(None);
    }
    let args = SetupArgs::default();
    let context = SetupContext { flags, args: &args, out };
    match prompts::until_interrupt(run_steps(&context)).await {
        Ok(()) => Ok(None),
        Err(failure) if failure.exit == ExitStatus::Interrupted => {
            Ok(Some(out.print_failure(&failure)))
        }
        // The chat starts nevertheless, because nothing may block a first look at the program.
        Err(failure) => {
            out.print_failure(&failure);
            Ok(None)
        }
    }
}

async fn run_steps(context: &SetupContext<'_>) -> Result<(), CommandFailure> {
    model::set_up_model(context).await?;
    plugins::offer_plugins(context).await
}

/// Returns the file that will remember the offer; `None` if there is nothing to offer.
fn offer_file(flags: &ConfigFlags, chat: &ChatArgs, out: &CliOutput) -> Option<PathBuf> {
    let is_chosen = flags.model.is_some() || flags.provider.is_some() || chat.ui.is_some();
    if is_chosen || !is_interactive(out) {
        return None;
    }
    let paths = HostPaths::new(&Env::from_process()).ok()?;
    let file = paths.state.join(OFFERED_FILE);
    // The chat itself reports a mistake in the files.
    let settings = HostSettings::resolve(flags, Env::from_process()).ok()?;
    let has_none = settings.model == (ModelChoice::Offline { is_explicit: false })
        && settings.models.entries.is_empty();
    (has_none && !file.exists()).then_some(file)
}

fn remember_offer(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match atomic_file::create_file(file, b"") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
