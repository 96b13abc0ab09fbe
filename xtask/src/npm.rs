//! Installs packages of npm for a task, with the scripts that import them beside them.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};

use crate::process::run_command;

/// Puts scripts, as names and texts, and packages into a folder.
pub(crate) fn install_packages(
    folder: &Path,
    scripts: &[(&str, &str)],
    packages: &[&str],
) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("package.json"), "{ \"private\": true, \"type\": \"module\" }\n")?;
    for (name, text) in scripts {
        fs::write(folder.join(name), text)?;
    }
    run_command(
        Command::new("npm")
            .current_dir(folder)
            .args(["install", "--no-fund", "--no-audit", "--silent"])
            .args(packages),
    )
    .context("Node and npm are needed")
}
