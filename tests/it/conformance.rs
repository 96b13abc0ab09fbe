//! The conformance cases, in every language whose plugin is built. A language that is not built is
//! named in the output. `cargo xtask languages` builds and tests all of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{
    Home,
    home::{guest, repository},
};

/// The languages other than Rust, and where `plugin build` puts their plugin.
const LANGUAGES: [(&str, &str); 6] = [
    ("Python", "sdk/python/conformance"),
    ("JavaScript", "sdk/js/conformance"),
    ("TypeScript", "sdk/js/conformance-ts"),
    ("C", "sdk/c/conformance"),
    ("C++", "sdk/c/conformance-cpp"),
    ("Go", "sdk/go/conformance"),
];

fn case_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join("tests/conformance")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

/// Runs all cases with a plugin. Returns what failed.
fn run_cases(component: &Path) -> Vec<String> {
    let home = Home::new();
    let component = component.to_str().unwrap();
    let mut failed = Vec::new();
    for file in case_files() {
        let args =
            ["plugin", "test", component, "--output", "json", "--cases", file.to_str().unwrap()];
        let report = home.run(&args).json();
        let cases = report["cases"].as_array().unwrap();
        assert!(!cases.is_empty(), "{}", file.display());
        let wrong = cases.iter().filter(|case| case["passed"] != true);
        failed.extend(wrong.map(|case| format!("{}: {}", case["name"], case["differences"])));
    }
    failed
}

#[test]
fn the_rust_sdk_passes_the_conformance_cases() {
    let manifest = repository().join("tests/guests/conformance/plugin.toml");
    let home = Home::new()
        .user_file("conformance/plugin.toml", fs::read(manifest).unwrap())
        .user_file("conformance/conformance.wasm", guest("conformance"));
    let failed = run_cases(&home.user_path("conformance/conformance.wasm"));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_other_sdks_pass_the_conformance_cases() {
    for (language, folder) in LANGUAGES {
        let component = repository().join(folder).join("conformance.wasm");
        if !component.is_file() {
            println!("left out: {language}, because {folder} is not built");
            continue;
        }
        let failed = run_cases(&component);
        assert!(failed.is_empty(), "{language}:\n{}", failed.join("\n"));
    }
}
