//! Programs of other projects that some tests run for real: a browser, and one that a script plugin
//! stands on. They come from Debian's packages; where they cannot be installed, the tests that need
//! them say so and are left out.

use std::{
    env,
    process::{Command, Stdio},
};

/// A program, and the package that brings it.
const PROGRAMS: [(&str, &str); 3] =
    [("chromium", "chromium"), ("chromedriver", "chromium-driver"), ("task", "taskwarrior")];

/// The package manager.
const APT: &str = "apt-get";

/// Installs what is missing, as far as this machine lets us.
pub(crate) fn install() {
    let missing: Vec<&str> =
        PROGRAMS.iter().filter(|(name, _)| !is_there(name)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return;
    }
    let list = missing.join(", ");
    if !is_there(APT) || !rustix::process::geteuid().is_root() {
        println!("not installed: {list}; tests that need them are left out");
        return;
    }
    println!("installing {list}");
    let install = [&["install", "--no-install-recommends"], &missing[..]].concat();
    // A list of packages that is out of date names files that are gone.
    if !(apt(&["update"]) && apt(&install)) {
        println!("could not install {list}; tests that need them are left out");
    }
}

fn apt(args: &[&str]) -> bool {
    let status = Command::new(APT)
        .args(["-qq", "-y"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
