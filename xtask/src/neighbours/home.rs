//! A home with the reference plugin, and a server that serves it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{process::repository_root, serving::ServingProgram, wasm::TARGET};

/// Calls run without a question, except for the tools that show how an approval is asked.
const POLICY: &str = r#"
[plugin.reference]
progress = true

[[rule]]
tool = "reference.test_input_required_*"
decision = "ask"

[[rule]]
tool = "reference.test_streaming_elicitation"
decision = "ask"

[[rule]]
tool = "everything.*"
decision = "allow"

[[rule]]
tool = "filesystem.*"
decision = "allow"

[[rule]]
tool = "time.*"
decision = "allow"
"#;

/// A home of its own, and the program.
pub(super) struct NeighbourHome {
    program: PathBuf,
    home: TempDir,
}

impl NeighbourHome {
    /// Makes a home with the reference plugin.
    pub(super) fn new(program: PathBuf) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let plugin = home.path().join("plugins/reference");
        fs::create_dir_all(&plugin)?;
        let guests = repository_root().join("tests/guests");
        let component = guests.join("target").join(TARGET).join("release/reference.wasm");
        fs::copy(&component, plugin.join("reference.wasm"))
            .with_context(|| format!("cannot copy {}", component.display()))?;
        fs::copy(guests.join("reference/plugin.toml"), plugin.join("plugin.toml"))?;
        fs::write(home.path().join("policy.toml"), POLICY)?;
        Ok(Self { program, home })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// The program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The program with this home.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("SALLYPORT_HOME", self.home.path()).env("SALLYPORT_COLOR", "never");
        command
    }

    /// Writes another policy: the usual one, with a line more in one table.
    pub(super) fn write_policy_with(&self, table: &str, line: &str) -> Result<PathBuf> {
        let path = self.home.path().join("other-policy.toml");
        fs::write(&path, POLICY.replacen(table, &format!("{table}\n{line}"), 1))?;
        Ok(path)
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, args: &[&str]) -> Result<Output> {
        self.command()
            .args(args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))
    }

    /// Starts to serve the tools over HTTP.
    pub(super) fn serve(&self) -> Result<ServingProgram> {
        self.start(&["mcp", "--http", "127.0.0.1:0", "--names", "tool"], "over MCP at ")
    }

    /// Starts to serve users over HTTP, with another policy.
    pub(super) fn serve_users(&self, policy: &Path) -> Result<ServingProgram> {
        let policy = policy.to_str().context("the path of the policy is no text")?;
        let args = ["serve", "--listen", "127.0.0.1:0", "--model", "offline", "--policy", policy];
        self.start(&args, " tools at ")
    }

    /// Starts a server. The address follows a text in its log.
    fn start(&self, args: &[&str], before_url: &str) -> Result<ServingProgram> {
        ServingProgram::start(self.command().args(args), before_url)
    }
}
