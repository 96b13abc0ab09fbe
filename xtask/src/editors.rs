//! Runs the official client of the Agent Client Protocol against `sallyport acp`.
//!
//! It needs Node and the registry of npm, so it is a task of its own and not a test.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::{
    build,
    process::{cargo_command, repository_root, run_command, run_for_status},
};

/// The client's package. The protocol's first version is stable in all of its second versions.
const CLIENT_PACKAGE: &str = "@agentclientprotocol/sdk@^2.4.0";

/// The script that drives it.
const CLIENT_SCRIPT: &str = include_str!("editors/client.mjs");

/// Installs the client, and has it hold a conversation. Prints a table.
pub(crate) fn run_editors() -> Result<()> {
    build::build_plugins()?;
    run_command(cargo_command().args(["build", "--quiet", "--package", "sallyport"]))?;
    let folder = repository_root().join("target/editors");
    install_client(&folder)?;
    let home = tempfile::tempdir()?;
    let program = repository_root().join("target/debug/sallyport");
    let plugins = repository_root().join("plugins-wasm");
    let status = run_for_status(
        Command::new("node").current_dir(&folder).arg(folder.join("client.mjs")).args([
            &program,
            home.path(),
            &plugins,
        ]),
    )?;
    ensure!(status.success(), "the client found a difference");
    Ok(())
}

fn install_client(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("package.json"), "{ \"private\": true, \"type\": \"module\" }\n")?;
    fs::write(folder.join("client.mjs"), CLIENT_SCRIPT)?;
    let packages = [CLIENT_PACKAGE, "zod@^4"];
    run_command(
        Command::new("npm")
            .current_dir(folder)
            .args(["install", "--no-fund", "--no-audit", "--silent"])
            .args(packages),
    )
}
