//! Installs programs of other projects that some tests and tasks run: a browser, one that a script
//! plugin calls, and a calendar server.
//!
//! They come from Debian's packages. Where they cannot be installed, the tests that need them are
//! skipped and report it. Programs that only tasks run come from the registry of crates.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::process::{cargo_command, repository_root, run_command};

/// The programs of the tests, each with the package that contains it.
pub(crate) const TEST_PROGRAMS: [(&str, &str); 3] =
    [("chromium", "chromium"), ("chromedriver", "chromium-driver"), ("task", "taskwarrior")];

/// Where programs of crates are installed, below the repository.
const TOOLS: &str = "target/tools";

/// The package manager.
const APT: &str = "apt-get";

/// Installs those programs that are missing, if this machine allows it.
pub(crate) fn install_programs(programs: &[(&str, &'static str)]) {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(name, _)| !is_installed(name))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return;
    }
    let list = missing.join(", ");
    if !is_installed(APT) || !rustix::process::geteuid().is_root() {
        println!("not installed: {list}; tests that need them are left out");
        return;
    }
    println!("installing {list}");
    let install = [&["install", "--no-install-recommends"], &missing[..]].concat();
    // Update first: an outdated package list names files that no longer exist.
    if !(run_apt(&["update"]) && run_apt(&install)) {
        println!("could not install {list}; tests that need them are left out");
    }
}

fn run_apt(args: &[&str]) -> bool {
    let status = Command::new(APT)
        .args(["-qq", "-y"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Whether a program is in `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns a program of a crate, which is installed if it is not there in this version.
pub(crate) fn install_crate_program(
    package: &str,
    version: &str,
    program: &str,
) -> Result<PathBuf> {
    let root = repository_root().join(TOOLS);
    let path = root.join("bin").join(program);
    let shown = Command::new(&path).arg("--version").output();
    let is_current =
        shown.is_ok_and(|shown| String::from_utf8_lossy(&shown.stdout).contains(version));
    if !is_current {
        eprintln!("installing {package} {version} …");
        let mut install = cargo_command();
        install.args(["install", package, "--locked", "--quiet", "--version", version]);
        run_command(install.arg("--root").arg(&root)).with_context(|| {
            format!("{package} cannot be installed; it needs the registry of crates")
        })?;
    }
    Ok(path)
}
