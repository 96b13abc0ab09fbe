//! Drives the web console of `sallyport serve` in a real browser, and keeps pictures of its pages.
//!
//! It needs Node, the registry of npm and Chromium, so it is a task of its own and not a test.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, ensure};

use crate::{
    build, connections, npm,
    process::{repository_root, run_for_status},
};

/// What drives the browser, what looks for barriers on a page, and the identity server.
const PACKAGES: [&str; 3] =
    ["playwright-core@^1.65", "axe-core@^4.14", connections::IDENTITY_SERVER];

/// The scripts, copied next to the packages that they import.
const SCRIPTS: [(&str, &str); 6] = [
    ("walk.mjs", include_str!("console/walk.mjs")),
    ("service.mjs", include_str!("console/service.mjs")),
    ("units.mjs", include_str!("console/units.mjs")),
    ("sign_on.mjs", include_str!("console/sign_on.mjs")),
    ("connect.mjs", include_str!("console/connect.mjs")),
    connections::IDENTITY_SCRIPT,
];

/// Where Chromium is. The variable counts more.
const CHROMIUM: &str = "/usr/bin/chromium";
const CHROMIUM_VARIABLE: &str = "CHROMIUM";

/// Walks through the console. Prints a table, and writes pictures into `target/console`.
pub(crate) fn run_console() -> Result<()> {
    let chromium = find_chromium()?;
    build::build_plugins()?;
    let program = build::build_host()?;
    let folder = repository_root().join("target/console");
    npm::install_packages(&folder, &SCRIPTS, &PACKAGES)?;
    let home = tempfile::tempdir()?;
    let plugins = repository_root().join("plugins-wasm");
    let status = run_for_status(
        Command::new("node").current_dir(&folder).arg(folder.join("walk.mjs")).args([
            program.as_path(),
            home.path(),
            &plugins,
            &chromium,
            &folder,
        ]),
    )?;
    ensure!(status.success(), "the console is not as it should be");
    Ok(())
}

/// The browser's program.
pub(crate) fn find_chromium() -> Result<PathBuf> {
    let chromium = std::env::var_os(CHROMIUM_VARIABLE).map_or(CHROMIUM.into(), PathBuf::from);
    let missing = || format!("no {}; name yours in {CHROMIUM_VARIABLE}", chromium.display());
    ensure!(chromium.exists(), missing());
    Ok(chromium)
}
