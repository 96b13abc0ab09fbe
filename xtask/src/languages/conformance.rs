//! The conformance cases, with the conformance plugin of each SDK.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    PluginLanguage,
    program::{Attempt, LanguageProgram, setback_of},
};
use crate::process::repository_root;

/// Folder of the cases.
const CASES: &str = "tests/conformance";

/// The workspace of the Rust conformance plugin, and what its copy has instead.
const RUST_WORKSPACE: &str = "tests/guests";

/// What a build leaves beside the sources. It is not copied.
const OUTPUTS: [&str; 6] = [".build", ".cargo", "node_modules", "target", ".sallyport", "dist"];

/// One file of cases in one language: how many passed, of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedCases {
    pub(super) passed: usize,
    pub(super) all: usize,
}

impl PassedCases {
    /// Whether there are cases and all of them passed.
    pub(super) fn is_whole(self) -> bool {
        self.all > 0 && self.passed == self.all
    }
}

/// Builds the conformance plugin and runs all files of cases, in the order of [`case_files`].
pub(super) fn run_conformance(
    language: PluginLanguage,
    program: &LanguageProgram,
) -> Attempt<Vec<PassedCases>> {
    let component = build_conformance(language, program)?;
    case_files()?.iter().map(|file| run_cases(language, program, &component, file)).collect()
}

/// The files of cases.
pub(super) fn case_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(repository_root().join(CASES))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json") {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "there are no cases in {CASES}");
    Ok(files)
}

fn build_conformance(language: PluginLanguage, program: &LanguageProgram) -> Attempt<PathBuf> {
    let copy = program.folder().join(format!("conformance-{}", language.word));
    let mut project = copy.clone();
    if language.word == "rust" {
        project = copy.join("conformance");
        copy_rust_workspace(&copy)?;
    }
    copy_sources(&repository_root().join(language.conformance), &project)?;
    program.expect(language, &project, &["plugin", "build", "--get-tools"])?;
    Ok(project.join("conformance.wasm"))
}

/// Copies the manifest of the workspace that the plugin inherits from, with this one member.
fn copy_rust_workspace(copy: &Path) -> Result<()> {
    let workspace = repository_root().join(RUST_WORKSPACE);
    let manifest = fs::read_to_string(workspace.join("Cargo.toml"))?;
    let sdk = repository_root().join("sdk/rust").display().to_string();
    let is_members = |line: &&str| line.starts_with("members = ");
    let members = manifest.lines().find(is_members).context("the workspace has no members")?;
    fs::create_dir_all(copy)?;
    let manifest =
        manifest.replace(members, r#"members = ["conformance"]"#).replace("../../sdk/rust", &sdk);
    fs::write(copy.join("Cargo.toml"), manifest)?;
    fs::copy(workspace.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    Ok(())
}

/// Copies a folder without what builds leave in it.
pub(super) fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_output = OUTPUTS.iter().any(|output| name == *output)
            || path.extension().is_some_and(|end| end == "wasm");
        match (is_output, path.is_dir()) {
            (true, _) => {}
            (false, true) => copy_sources(&path, &to.join(name))?,
            (false, false) => drop(fs::copy(&path, to.join(name))?),
        }
    }
    Ok(())
}

/// Runs one file of cases. The cases that fail are printed.
pub(super) fn run_cases(
    language: PluginLanguage,
    program: &LanguageProgram,
    component: &Path,
    cases: &Path,
) -> Attempt<PassedCases> {
    let title = cases.file_stem().unwrap_or_default().to_string_lossy();
    let (component, file) = (component.display().to_string(), cases.display().to_string());
    let args = ["plugin", "test", &component, "--cases", &file, "--output", "json"];
    let output = program.run(program.folder(), &args)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|_| setback_of(&stderr, ""))?;
    let results = report["cases"].as_array().cloned().unwrap_or_default();
    let passed = results.iter().filter(|case| case["passed"] == true).count();
    eprintln!("{}: {title}: {passed} of {} cases pass", language.name, results.len());
    for failed in results.iter().filter(|case| case["passed"] != true) {
        eprintln!("  {}: {}", failed["name"], failed["differences"]);
    }
    Ok(PassedCases { passed, all: results.len() })
}
