//! The program that the languages are tried with, with a home of its own.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::PluginLanguage;
use crate::process::repository_root;

/// Why a language did not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setback {
    /// Its tools are not installed and cannot be installed here.
    ToolsMissing(String),
    /// It should have worked.
    Failed(String),
}

impl fmt::Display for Setback {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolsMissing(reason) => write!(out, "left out: {reason}"),
            Self::Failed(reason) => write!(out, "FAILED: {reason}"),
        }
    }
}

impl From<anyhow::Error> for Setback {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(format!("{error:#}"))
    }
}

impl From<std::io::Error> for Setback {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What a language did, or why it could not.
pub(super) type Attempt<T> = std::result::Result<T, Setback>;

/// Parts of the messages that say that a tool is absent, or that it could not be installed.
const MISSING_TOOL: [&str; 3] =
    ["which is not installed", "pip install failed", "npm install failed"];

/// The built program and its home.
pub(super) struct LanguageProgram {
    program: PathBuf,
    home: TempDir,
}

impl LanguageProgram {
    /// Makes a home for the program. Its cache is that of the repository's builds, so that tools
    /// are installed once.
    pub(super) fn new(program: PathBuf) -> Result<Self> {
        let home = TempDir::with_prefix("sallyport-languages-")?;
        let cache = tool_cache();
        fs::create_dir_all(&cache)?;
        make_home(&home.path().join("home"))?;
        // All Rust projects share what is compiled of their dependencies.
        let compiled = cache.join("cargo").display().to_string();
        fs::create_dir(home.path().join(".cargo"))?;
        fs::write(
            home.path().join(".cargo/config.toml"),
            format!("[build]\ntarget-dir = {compiled:?}\n"),
        )?;
        let programs = home.path().join("bin");
        fs::create_dir(&programs)?;
        std::os::unix::fs::symlink(&program, programs.join("sallyport"))?;
        Ok(Self { program, home })
    }

    /// An empty folder, which lives as long as the program.
    pub(super) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// A command of the program, to be run in a folder.
    pub(super) fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(folder);
        command.env("SALLYPORT_HOME", self.home.path().join("home"));
        command
    }

    /// A home that no other part of the task uses.
    pub(super) fn own_home(&self, name: &str) -> Result<PathBuf> {
        let home = self.home.path().join(format!("home-{name}"));
        make_home(&home)?;
        Ok(home)
    }

    /// Lets a command find the program as `sallyport`, with a home.
    pub(super) fn with_path<'c>(
        &self,
        command: &'c mut Command,
        home: &Path,
    ) -> Result<&'c mut Command> {
        let programs = self.home.path().join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(programs).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders)?);
        Ok(command.env("SALLYPORT_HOME", home))
    }

    /// Runs a command to its end, whatever that is.
    pub(super) fn run(&self, folder: &Path, args: &[&str]) -> Result<Output> {
        let mut command = self.command(folder, args);
        command.output().with_context(|| format!("cannot run {}", self.program.display()))
    }

    /// Runs a command that has to succeed, and says so before. Returns its output and its time.
    pub(super) fn expect(
        &self,
        language: PluginLanguage,
        folder: &Path,
        args: &[&str],
    ) -> Attempt<(String, Duration)> {
        eprintln!("{}: sallyport {} …", language.name, args.join(" "));
        let started = Instant::now();
        let output = self.run(folder, args)?;
        let took = started.elapsed();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok((text(&output.stdout), took)),
            false => Err(setback_of(&text(&output.stderr), &text(&output.stdout))),
        }
    }
}

/// The folder of the tools and of what is compiled.
fn tool_cache() -> PathBuf {
    repository_root().join("target/languages")
}

/// Makes a home whose cache is that of the repository's builds.
fn make_home(home: &Path) -> Result<()> {
    fs::create_dir(home)?;
    Ok(std::os::unix::fs::symlink(tool_cache(), home.join("cache"))?)
}

/// Why a command failed, from what it printed.
pub(super) fn setback_of(stderr: &str, stdout: &str) -> Setback {
    let missing = stderr.lines().find(|line| MISSING_TOOL.iter().any(|part| line.contains(part)));
    if let Some(line) = missing {
        return Setback::ToolsMissing(line.trim_start_matches("error: ").to_owned());
    }
    let lines = || stderr.lines().chain(stdout.lines());
    let error = lines().find(|line| line.starts_with("error"));
    let reason = error.or_else(|| lines().next()).unwrap_or("it failed without a message");
    Setback::Failed(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_not_a_failure() {
        let check = |stderr: &str, stdout: &str, want: Setback| {
            assert_eq!(setback_of(stderr, stdout), want, "{stderr}");
        };
        let missing = "building C plugins needs Zig, which is not installed";
        check(
            &format!("error: {missing}\nTo fix: …"),
            "",
            Setback::ToolsMissing(missing.to_owned()),
        );
        let offline = "pip install failed with code 1";
        check(
            &format!("WARNING: Retrying\nERROR: no match\nerror: {offline}"),
            "",
            Setback::ToolsMissing(offline.to_owned()),
        );
        check("note\nerror: it broke", "", Setback::Failed("error: it broke".to_owned()));
        check("", "FAIL one case", Setback::Failed("FAIL one case".to_owned()));
        check("", "", Setback::Failed("it failed without a message".to_owned()));
    }
}
