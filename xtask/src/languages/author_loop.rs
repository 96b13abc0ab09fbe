//! The author's loop: a new project, its build, its test and a call, with times and the size.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    PluginLanguage,
    program::{Attempt, LanguageProgram},
};

/// The author's loop in one language.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopFigures {
    /// Time of a build after the first one.
    pub(super) build: Duration,
    /// Time of the project's own cases.
    pub(super) test: Duration,
    /// Time of the whole command, with the start of the program and the compilation from its cache.
    pub(super) call: Duration,
    /// Size of the component.
    pub(super) bytes: u64,
}

/// Runs the loop in an empty folder.
pub(super) fn run_loop(
    language: PluginLanguage,
    program: &LanguageProgram,
) -> Attempt<LoopFigures> {
    let (name, folder) = (format!("try-{}", language.word), program.folder());
    let project = folder.join(&name);
    let expect = |folder: &Path, args: &[&str]| program.expect(language, folder, args);
    expect(folder, &["plugin", "new", &name, "--lang", language.word])?;
    // The first build may install tools and compile dependencies. The second is one of an author.
    expect(&project, &["plugin", "build", "--get-tools"])?;
    let (_, build) = expect(&project, &["plugin", "build"])?;
    let (_, test) = expect(&project, &["plugin", "test"])?;
    let (tool, arguments) = first_call(&project)?;
    let call = ["--plugin-dir", ".", "call", &format!("{name}.{tool}"), &arguments];
    let (_, call) = expect(&project, &call)?;
    let bytes = fs::metadata(project.join(format!("{name}.wasm")))?.len();
    Ok(LoopFigures { build, test, call, bytes })
}

/// The tool and the arguments of a project's first case.
pub(super) fn first_call(project: &Path) -> Result<(String, String)> {
    let cases: Value = serde_json::from_str(&fs::read_to_string(project.join("cases.json"))?)?;
    let first = &cases["cases"][0];
    let tool = first["tool"].as_str().context("the first case names no tool")?;
    Ok((tool.to_owned(), first["arguments"].to_string()))
}
