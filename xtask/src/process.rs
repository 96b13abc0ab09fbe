//! Runs other programs and locates the repository.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Root folder of the repository.
pub(crate) fn repository_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The cargo that started this task, run in the repository's root.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository_root());
    command
}

/// Runs a program to its end. Any exit status other than success is an error.
pub(crate) fn run_command(command: &mut Command) -> Result<()> {
    let status = run_for_status(command)?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs a program to its end and returns its exit status.
pub(crate) fn run_for_status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot start {command:?}"))
}

/// Runs a program and returns its standard output. A failure of the program is an error.
pub(crate) fn run_for_output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
