//! Runs the official client of the Agent Client Protocol against `sallyport acp`.
//!
//! It needs Node and the registry of npm, so it is a task of its own and not a test.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{
    build, npm,
    process::{repository_root, run_for_status},
};

/// The client, and what it needs. The protocol's first version is stable in all of its second
/// versions.
const CLIENT_PACKAGES: [&str; 2] = ["@agentclientprotocol/sdk@^2.4.0", "zod@^4"];

/// The script that drives it.
const CLIENT_SCRIPT: (&str, &str) = ("client.mjs", include_str!("editors/client.mjs"));

/// Installs the client, and has it hold a conversation. Prints a table.
pub(crate) fn run_editors() -> Result<()> {
    build::build_plugins()?;
    let program = build::build_host()?;
    let folder = repository_root().join("target/editors");
    npm::install_packages(&folder, &[CLIENT_SCRIPT], &CLIENT_PACKAGES)?;
    let home = tempfile::tempdir()?;
    let plugins = repository_root().join("plugins-wasm");
    let status = run_for_status(
        Command::new("node").current_dir(&folder).arg(folder.join(CLIENT_SCRIPT.0)).args([
            &program,
            home.path(),
            &plugins,
        ]),
    )?;
    ensure!(status.success(), "the client found a difference");
    Ok(())
}
