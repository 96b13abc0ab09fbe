//! Installs programs of other projects that some tests and tasks run: a browser, one that a script
//! plugin calls, and a calendar server.
//!
//! They come from Debian's packages. Where they cannot be installed, the tests that need them are
//! skipped and report it.

use std::{
    env,
    process::{Command, Stdio},
};

/// The programs of the tests, each with the package that contains it.
pub(crate) const TEST_PROGRAMS: [(&str, &str); 3] =
    [("chromium", "chromium"), ("chromedriver", "chromium-driver"), ("task", "taskwarrior")];

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
