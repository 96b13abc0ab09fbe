//! Components of other generators, written from plain WIT without a thought of this host: their
//! functions are tools with the same schemas as those of the Rust component, and every value comes
//! back.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    PluginLanguage,
    conformance::{PassedCases, copy_sources, run_cases},
    program::{Attempt, LanguageProgram, Setback, setback_of},
};
use crate::{
    build::target_folder,
    npm::install_packages,
    process::{cargo_command, repository_root, run_command},
};

/// Folder of the components' sources and of their cases.
const SOURCES: &str = "tests/plain";

/// Folder of the interface.
const WIT: &str = "tests/guests/typed/wit";

/// The schemas of the Rust component, as the integration tests keep them.
const SNAPSHOT: &str = "tests/it/snapshots/it__typed__the_schemas_are_exact.snap";

/// The pinned generator of JavaScript components, as a package of npm.
const JS_GENERATOR: &str = include_str!("../../../sdk/js/tools-spidermonkey.txt");

/// Builds the component of a language's generator and runs the cases. `None` if the language has
/// none here.
pub(super) fn run_plain(
    language: PluginLanguage,
    program: &LanguageProgram,
) -> Option<Attempt<PassedCases>> {
    let sources = repository_root().join(SOURCES).join(language.word);
    sources.is_dir().then(|| check_component(language, program, &sources))
}

fn check_component(
    language: PluginLanguage,
    program: &LanguageProgram,
    sources: &Path,
) -> Attempt<PassedCases> {
    eprintln!("{}: a component from plain WIT …", language.name);
    let folder = program.folder().join(format!("plain-{}", language.word));
    copy_sources(sources, &folder.join("source"))?;
    fs::create_dir_all(folder.join("plugins"))?;
    let component = folder.join("plugins/typed.wasm");
    build_component(language, &folder.join("source"), &component)?;
    let cases = repository_root().join(SOURCES).join("cases.json");
    let found = run_cases(language, program, &component, &cases)?;
    // After the cases, because a component that is not compiled yet has no tools to list.
    check_schemas(program, &folder.join("plugins"))?;
    Ok(found)
}

fn build_component(language: PluginLanguage, source: &Path, component: &Path) -> Attempt<()> {
    let wit = repository_root().join(WIT);
    let mut generator = match language.word {
        "python" => python_generator(&wit)?,
        "js" => js_generator(&wit, source)?,
        word => example_generator(word)?,
    };
    if let Some(compiler) = native_compiler(language.word)? {
        generator.args([wit.as_path(), source, component, &compiler]);
    } else {
        generator.arg(component);
    }
    let output = generator.current_dir(source).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(setback_of(&String::from_utf8_lossy(&output.stderr), "")),
    }
}

fn python_generator(wit: &Path) -> Attempt<Command> {
    let mut generator = Command::new(tool_path("SALLYPORT_PYTHON", "python", "bin/python3")?);
    generator
        .args(["-c", "from componentize_py import script; script()", "-q", "-w", "plain", "-d"])
        .arg(wit);
    generator.args(["componentize", "--stub-wasi", "app", "-o"]);
    Ok(generator)
}

/// The generator of the WebAssembly project, and not that of the SDK, which passes 64-bit integers as
/// numbers of 53 bits.
fn js_generator(wit: &Path, source: &Path) -> Attempt<Command> {
    let folder = tools_folder().join("js-generator");
    let modules = folder.join("node_modules");
    if !modules.is_dir() {
        install_packages(&folder, &[], &[JS_GENERATOR.trim()])?;
    }
    symlink(modules, source.join("node_modules"))?;
    let mut generator = Command::new("node");
    generator.arg("build.mjs").arg(wit);
    Ok(generator)
}

/// The generators of C and Go are crates, and an example of the crate that uses them runs them.
fn example_generator(word: &str) -> Attempt<Command> {
    let name = "plain_component";
    run_command(cargo_command().args([
        "build",
        "-q",
        "-p",
        "sallyport-componentize",
        "--example",
        name,
    ]))?;
    let mut generator = Command::new(target_folder().join("debug/examples").join(name));
    generator.arg(word);
    Ok(generator)
}

/// The compiler of a language whose generator does not contain one.
fn native_compiler(word: &str) -> Attempt<Option<PathBuf>> {
    match word {
        "c" => tool_path("SALLYPORT_ZIG", "c", "ziglang/zig").map(Some),
        "go" => tool_path("SALLYPORT_GO", "go", "go/bin/go").map(Some),
        _ => Ok(None),
    }
}

/// A tool that a variable names, or that an earlier part of the task has installed into a folder,
/// as it is or as a Python package.
fn tool_path(variable: &str, folder: &str, place: &str) -> Attempt<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Ok(named.into());
    }
    let installed = tools_folder().join(folder);
    let versions = fs::read_dir(installed.join("lib")).into_iter().flatten().flatten();
    let packages = versions.map(|version| version.path().join("site-packages"));
    let mut paths = [installed].into_iter().chain(packages).map(|folder| folder.join(place));
    let missing = || Setback::ToolsMissing(format!("{place} is not installed"));
    paths.find(|path| path.exists()).ok_or_else(missing)
}

/// Where the task installs tools.
fn tools_folder() -> PathBuf {
    repository_root().join("target/languages/tools")
}

/// Compares the schemas of the functions with those of the Rust component.
fn check_schemas(program: &LanguageProgram, plugins: &Path) -> Result<()> {
    let folder = plugins.display().to_string();
    let output =
        program.run(plugins, &["--plugin-dir", &folder, "tool", "list", "--output", "json"])?;
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let snapshot = fs::read_to_string(repository_root().join(SNAPSHOT))?;
    let wanted = snapshot.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut compared = 0;
    for wanted in wanted.filter(is_plain) {
        let name = &wanted["function"]["name"];
        let found = listed.iter().find(|tool| tool["function"]["name"] == *name);
        let found = found.with_context(|| format!("the tool {name} is missing"))?;
        let parameters = |tool: &Value| tool["function"]["parameters"].to_string();
        ensure!(
            parameters(found) == parameters(&wanted),
            "the schema of {name} is {}, and not {}",
            parameters(found),
            parameters(&wanted)
        );
        compared += 1;
    }
    ensure!(compared > 0, "the snapshot has none of the functions");
    Ok(())
}

/// Whether a tool is one of the world `plain`.
fn is_plain(tool: &Value) -> bool {
    let name = tool["function"]["name"].as_str().unwrap_or_default();
    name.starts_with("typed__echo_") || name == "typed__greet"
}
