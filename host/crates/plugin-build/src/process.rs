//! Starts other programs: the only place of this crate that does.
#![expect(clippy::disallowed_methods, reason = "compilers are started here, and nowhere else")]

use std::{
    ffi::OsStr,
    io::{IsTerminal, Write},
    process::{Command, Stdio},
};

use crate::error::PluginBuildError;

/// A command that starts a program.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Runs a program to its end. What it prints is shown on standard error, because standard output is
/// for the answer of ours.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<(), PluginBuildError> {
    command.stdin(Stdio::null()).stdout(std::io::stderr());
    let ended = command.status().map_err(|error| not_started(name, error))?;
    match ended.success() {
        true => Ok(()),
        false => Err(failed(name, ended.code())),
    }
}

/// Runs a program to its end and returns its standard output. Its standard error is shown.
pub(crate) fn run_for_output(
    name: &str,
    command: &mut Command,
) -> Result<String, PluginBuildError> {
    let ended = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let ended = ended.map_err(|error| not_started(name, error))?;
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
        false => Err(failed(name, ended.status.code())),
    }
}

/// Whether a program can be started and ends well. It is run quietly.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether a program can be started, ends well and prints something. What it prints is not shown.
pub(crate) fn answers(command: &mut Command) -> bool {
    let ended = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    ended.is_ok_and(|ended| ended.status.success() && !ended.stdout.is_empty())
}

/// Shows the output of a compiler, unchanged.
pub(crate) fn show_message(text: &str) {
    // Without standard error there is nobody to read it.
    let _ = std::io::stderr().write_all(format!("{}\n", text.trim_end()).as_bytes());
}

/// Whether a user can see progress.
pub(crate) fn shows_progress() -> bool {
    std::io::stderr().is_terminal()
}

fn not_started(name: &str, error: std::io::Error) -> PluginBuildError {
    PluginBuildError::NotStarted { program: name.to_owned(), error }
}

fn failed(name: &str, code: Option<i32>) -> PluginBuildError {
    PluginBuildError::ProgramFailed { program: name.to_owned(), code }
}
