//! House rules that no compiler checks: file sizes, opening comments, and dependencies between
//! crates and between modules.

mod layers;
mod names;
mod rust_tokens;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use self::{layers::ModuleLayers, names::TypeNames};
use crate::{
    drawings, fuzz,
    process::{cargo_command, repository_root, run_command, run_for_output},
};

/// Longest source file in lines, tests included.
const FILE_LINES_MAX: usize = 600;

/// Packages that only the listed `Cargo.toml` files may name.
const OWNERS: [(&str, &[&str]); 11] = [
    ("wasmtime", &["host/crates/sandbox/Cargo.toml", "host/benches/floor/Cargo.toml"]),
    (
        "axum",
        &[
            "host/benches/http-floor/Cargo.toml",
            "host/crates/approval-page/Cargo.toml",
            "host/crates/service/Cargo.toml",
        ],
    ),
    (
        "reqwest",
        &[
            "host/crates/connections/Cargo.toml",
            "host/crates/http-client/Cargo.toml",
            "host/crates/mcp-client/Cargo.toml",
            "host/crates/model/Cargo.toml",
            "host/crates/packages/Cargo.toml",
            "host/crates/service/Cargo.toml",
            "host/crates/telemetry/Cargo.toml",
        ],
    ),
    ("rusqlite", &["host/crates/store/Cargo.toml"]),
    ("tokio-postgres", &["host/crates/store/Cargo.toml"]),
    ("croner", &["host/crates/schedule/Cargo.toml"]),
    ("cel", &["host/crates/policy/Cargo.toml"]),
    ("reedline", &["host/crates/terminal/Cargo.toml"]),
    ("seccompiler", &["host/crates/walls/Cargo.toml"]),
    ("openidconnect", &["host/crates/service/Cargo.toml"]),
    ("rmcp", &["host/crates/mcp/Cargo.toml", "host/crates/mcp-client/Cargo.toml"]),
];

/// Packages that the pure crates must not depend on.
const IMPURE: [&str; 6] = ["tokio", "wasmtime", "reqwest", "hyper", "rustix", "tempfile"];
const PURE_CRATES: [&str; 2] = ["contract", "policy"];

/// The libraries that other programs may embed. They have no command line and no terminal.
const LIBRARIES: [&str; 4] = [
    "host/crates/runtime/Cargo.toml",
    "host/crates/mcp/Cargo.toml",
    "host/crates/acp/Cargo.toml",
    "host/crates/service/Cargo.toml",
];

/// Packages that these libraries must not depend on.
const PRINTERS: [&str; 7] =
    ["clap", "anstream", "anstyle", "crossterm", "reedline", "miette", "sallyport-terminal"];

/// Words that must not occur in a folder, with the reason.
const FORBIDDEN: [(&str, &str, &str); 13] = [
    ("host/crates/runtime/src", "println!", "the library prints nothing"),
    ("host/crates/runtime/src", "print!", "the library prints nothing"),
    ("host/crates/runtime/src", "io::stdout", "the library prints nothing"),
    ("host/crates/runtime/src", "io::stderr", "the library prints nothing"),
    ("host/crates/contract/src", "std::fs", "contract does no I/O"),
    ("host/crates/contract/src", "std::env", "contract does no I/O"),
    ("host/crates/policy/src", "std::fs", "policy does no I/O"),
    ("host/crates/policy/src", "std::env", "policy does no I/O"),
    ("host/crates/policy/src", "std::thread", "policy cannot block"),
    ("host/crates/policy/src", "Default", "nothing that grants has a default"),
    ("host/crates/session/src", "std::fs", "a session is deterministic"),
    ("host/crates/session/src", "std::env", "a session is deterministic"),
    ("host/crates/session/src", "SystemTime", "a session is given its clock"),
];

/// Checks formatting, lints, documentation, drawings, and the rules below.
pub(crate) fn check_all() -> Result<()> {
    check_house_rules()?;
    drawings::check_drawings()?;
    let workspaces = ["Cargo.toml", "plugins-src/Cargo.toml", "tests/guests/Cargo.toml"];
    for manifest in workspaces {
        run_command(cargo_command().args([
            "fmt",
            "--all",
            "--check",
            "--manifest-path",
            manifest,
        ]))?;
    }
    // Enable the feature of the benchmarks, because clippy would skip them without it.
    run_command(
        cargo_command()
            .args([
                "clippy",
                "--workspace",
                "--all-targets",
                "--features",
                "sallyport-session/bench",
            ])
            .args(["--", "-D", "warnings"]),
    )?;
    run_command(
        cargo_command()
            .args(["clippy", "--manifest-path", "plugins-src/Cargo.toml", "--workspace"])
            .args(["--all-targets", "--", "-D", "warnings"]),
    )?;
    fuzz::check_targets()?;
    run_command(cargo_command().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--workspace",
        "--no-deps",
    ]))
}

/// Checks the house rules and reports every breach.
pub(crate) fn check_house_rules() -> Result<()> {
    let mut breaches = Vec::new();
    let mut type_names = TypeNames::default();
    let mut layers = ModuleLayers::default();
    for path in tracked_files()? {
        let text = fs::read_to_string(repository_root().join(&path)).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "rs") {
            type_names.add_file(&path, &text);
            layers.add_file(&path, &text);
            breaches.extend(source_breaches(&path, &text));
            breaches.extend(forbidden_breaches(&path, &text));
        }
        if path.ends_with("Cargo.toml") {
            breaches.extend(arrow_breaches(&path, &text));
        }
    }
    breaches.extend(type_names.breaches());
    breaches.extend(layers.breaches());
    if breaches.is_empty() {
        return Ok(());
    }
    bail!("{} breaches of the house rules:\n  {}", breaches.len(), breaches.join("\n  "))
}

fn tracked_files() -> Result<Vec<PathBuf>> {
    let mut git = std::process::Command::new("git");
    let listed = run_for_output(
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(repository_root()),
    )?;
    Ok(listed.lines().map(PathBuf::from).collect())
}

fn source_breaches(path: &Path, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        breaches.push(format!("{}: {lines} lines, at most {FILE_LINES_MAX}", path.display()));
    }
    if !text.trim_start().starts_with("//!") {
        breaches.push(format!("{}: does not open by saying what it is (//!)", path.display()));
    }
    breaches
}

fn forbidden_breaches(path: &Path, text: &str) -> Vec<String> {
    let rules = FORBIDDEN.iter().filter(|(folder, word, _)| {
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        path.starts_with(folder)
            && !is_test
            && text.lines().any(|line| strip_comment(line).contains(word))
    });
    rules.map(|(_, word, why)| format!("{}: says {word}; {why}", path.display())).collect()
}

/// A line without its comment.
fn strip_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

fn arrow_breaches(path: &Path, text: &str) -> Vec<String> {
    let names = |package: &str| text.lines().any(|line| declares_package(line, package));
    let mut breaches = Vec::new();
    for (package, owners) in OWNERS {
        let may =
            path == Path::new("Cargo.toml") || owners.iter().any(|one| path == Path::new(one));
        if !may && names(package) {
            let owners = owners.join(" and ");
            breaches.push(format!("{}: only {owners} may name {package}", path.display()));
        }
    }
    for pure in PURE_CRATES {
        let own = Path::new("host/crates").join(pure).join("Cargo.toml");
        for package in IMPURE.iter().filter(|package| path == own && names(package)) {
            breaches.push(format!("{}: {pure} is pure and cannot use {package}", path.display()));
        }
    }
    let is_library = LIBRARIES.iter().any(|library| path == Path::new(library));
    for package in PRINTERS.iter().filter(|package| is_library && names(package)) {
        breaches.push(format!("{}: the library cannot use {package}", path.display()));
    }
    breaches
}

fn declares_package(line: &str, package: &str) -> bool {
    line.strip_prefix(package).is_some_and(|rest| rest.starts_with([' ', '.', '=', '-']))
}
