//! The processes between the host and a program: this same executable, with a hidden argument.

mod pipes;
pub(crate) mod private_folder;
mod service_watcher;
mod starter;
mod watcher;

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use crate::wire::{ARGUMENT, SERVICE_WATCHER, STARTER, WATCHER};

/// Runs a stage if this process was started as one. The caller must exit with the returned code.
///
/// `main` must call this first: earlier effects are not undone.
pub fn run_if_stage() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let worked = match arguments.next() {
        Some(stage) if stage == WATCHER => watcher::run_watcher(),
        Some(stage) if stage == SERVICE_WATCHER => service_watcher::run_service_watcher(),
        Some(stage) if stage == STARTER => starter::run_starter(),
        _ => Err(io::Error::other("there is no such stage")),
    };
    Some(match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}

/// Returns the command that starts a stage, with an empty environment.
#[expect(clippy::disallowed_methods, reason = "this very program, as a stage before a script")]
pub(crate) fn stage_command(program: &Path, stage: &str) -> Command {
    let mut command = Command::new(program);
    command.arg0("sallyport").args([ARGUMENT, stage]).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
