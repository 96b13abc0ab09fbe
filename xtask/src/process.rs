//! Runs other programs and locates the repository.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
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

/// The resident memory of a process that runs, in bytes.
pub(crate) fn resident_bytes(process: &Child) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib = kib.context("the memory of the server is not known")?.trim().parse::<u64>()?;
    Ok(kib * 1024)
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
