//! Connects accounts at a real identity server in a real browser, and keeps a calendar on a real
//! CalDAV server.
//!
//! It needs Node, the registry of npm, Chromium and Radicale, so it is a task of its own and not a
//! test.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{
    build, console, npm,
    process::{repository_root, run_for_status},
    programs,
};

/// The identity server. The version is fixed, because the walks fill in its pages and read its events.
pub(crate) const IDENTITY_SERVER: &str = "oidc-provider@9.13.3";

/// What starts the identity server.
pub(crate) const IDENTITY_SCRIPT: (&str, &str) =
    ("provider.mjs", include_str!("connections/provider.mjs"));

/// The identity server, and what drives the browser.
const PACKAGES: [&str; 2] = [IDENTITY_SERVER, "playwright-core@^1.65"];

/// The scripts, copied next to the packages that they import.
const SCRIPTS: [(&str, &str); 4] = [
    ("walk.mjs", include_str!("connections/walk.mjs")),
    IDENTITY_SCRIPT,
    ("program.mjs", include_str!("connections/program.mjs")),
    ("calendar.mjs", include_str!("connections/calendar.mjs")),
];

/// The calendar server, with the package that contains it.
const CALENDAR_SERVER: (&str, &str) = ("radicale", "radicale");

/// Walks through the life of accounts. Prints a line for each check.
pub(crate) fn run_connections() -> Result<()> {
    let chromium = console::find_chromium()?;
    programs::install_programs(&[CALENDAR_SERVER]);
    ensure!(programs::is_installed(CALENDAR_SERVER.0), "no {} in PATH", CALENDAR_SERVER.0);
    build::build_plugins()?;
    let program = build::build_host()?;
    let folder = repository_root().join("target/connections");
    npm::install_packages(&folder, &SCRIPTS, &PACKAGES)?;
    let homes = tempfile::tempdir()?;
    let plugins = repository_root().join("plugins-wasm");
    let status = run_for_status(
        Command::new("node").current_dir(&folder).arg(folder.join("walk.mjs")).args([
            program.as_path(),
            homes.path(),
            &plugins,
            &chromium,
        ]),
    )?;
    ensure!(status.success(), "the connections are not as they should be");
    Ok(())
}
