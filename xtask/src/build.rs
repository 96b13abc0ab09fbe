//! Set-up and builds: the WebAssembly target, the plugins, the guests of the tests, and the tests.

use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    fuzz, pages,
    process::{cargo_command, repository_root, run_command, run_for_output},
    programs, python,
    wasm::{self, TARGET},
};

/// Folder of the script plugins.
pub(crate) const SCRIPTS: &str = "plugins-src/scripts";

/// Adds the WebAssembly target if it is missing.
pub(crate) fn install_target() -> Result<()> {
    let installed = run_for_output(
        Command::new("rustup")
            .args(["target", "list", "--installed"])
            .current_dir(repository_root()),
    )
    .context("rustup is needed for the wasm32-wasip2 target; see https://rustup.rs")?;
    if installed.lines().any(|line| line == TARGET) {
        return Ok(());
    }
    run_command(
        Command::new("rustup").args(["target", "add", TARGET]).current_dir(repository_root()),
    )
}

/// Makes cargo quiet unless it prints to a terminal. Its hundreds of lines would bury ours in a
/// log.
pub(crate) fn quiet_flag() -> Option<&'static str> {
    (!std::io::stderr().is_terminal()).then_some("--quiet")
}

/// Builds `plugins-src` and copies the results to where the host expects them: one folder per
/// plugin.
pub(crate) fn build_plugins() -> Result<()> {
    install_target()?;
    eprintln!("building the plugins …");
    let source = repository_root().join("plugins-src");
    wasm::build_components(&repository_root(), &source)?;
    for folder in plugin_folders(&source)? {
        let name = file_name(&folder);
        let Some(wasm) = plugin_component(&folder, &name)? else { continue };
        let target = plugin_output_folder(&name);
        fs::create_dir_all(&target)?;
        copy_if_changed(&folder.join("plugin.toml"), &target.join("plugin.toml"))?;
        copy_if_changed(&wasm, &target.join(format!("{name}.wasm")))?;
        let definition = format!("{name}.json");
        if folder.join(&definition).is_file() {
            copy_if_changed(&folder.join(&definition), &target.join(&definition))?;
        }
    }
    Ok(())
}

/// Names of this repository's plugins that are built.
pub(crate) fn plugin_names() -> Result<Vec<String>> {
    let folders = plugin_folders(&repository_root().join("plugins-src"))?;
    let names = folders.iter().map(|path| file_name(path));
    Ok(names
        .filter(|name| plugin_output_folder(name).join(format!("{name}.wasm")).is_file())
        .collect())
}

/// Names of this repository's script plugins.
pub(crate) fn script_names() -> Result<Vec<String>> {
    Ok(script_folders()?.iter().map(|path| file_name(path)).collect())
}

/// Builds the host in the debug profile and returns the path of the program.
pub(crate) fn build_host() -> Result<PathBuf> {
    eprintln!("building the host …");
    // The whole workspace with the features of the tests, so that the tests share what is built.
    run_command(cargo_command().arg("build").args(quiet_flag()).args([
        "--workspace",
        "--bin",
        "sallyport",
        "--features",
        "sallyport/like-tests",
    ]))?;
    Ok(target_folder().join("debug/sallyport"))
}

/// Folder into which cargo builds the workspace.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(repository_root().join("target"), Into::into)
}

/// Builds the components that the integration tests run, including those shown in the documents.
pub(crate) fn build_guests() -> Result<()> {
    install_target()?;
    eprintln!("building the components of the tests …");
    wasm::build_components(&repository_root(), &repository_root().join("tests/guests"))?;
    wasm::build_components(&repository_root(), &pages::write_page_plugins()?)
}

/// Sets up and runs every test: the plugins natively, the host and the SDK, then each fuzz target
/// for a few seconds.
pub(crate) fn run_all_tests() -> Result<()> {
    programs::install_programs(&programs::TEST_PROGRAMS);
    build_plugins()?;
    build_guests()?;
    run_command(cargo_command().args([
        "test",
        "--manifest-path",
        "plugins-src/Cargo.toml",
        "--workspace",
    ]))?;
    run_command(
        cargo_command()
            .arg("test")
            .arg("--manifest-path")
            .arg(pages::write_page_plugins()?.join("Cargo.toml")),
    )?;
    run_python_tests()?;
    run_command(cargo_command().args(["test", "--workspace"]))?;
    fuzz::run_fuzz_targets(&[])
}

/// Folder in which the host finds a plugin.
pub(crate) fn plugin_output_folder(name: &str) -> PathBuf {
    repository_root().join("plugins-wasm").join(name)
}

/// Returns the component of a plugin, or `None` if this machine cannot build it.
fn plugin_component(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    if python::is_python(folder) {
        return python::build_component(folder, name);
    }
    let release = repository_root().join("plugins-src/target").join(TARGET).join("release");
    Ok(Some(release.join(format!("{}.wasm", name.replace('-', "_")))))
}

fn run_python_tests() -> Result<()> {
    let folders = plugin_folders(&repository_root().join("plugins-src"))?;
    let plugins = folders.into_iter().filter(|folder| python::is_python(folder));
    plugins.chain(script_folders()?).try_for_each(|folder| python::run_tests(&folder))
}

/// Folders of the script plugins, which need no build.
fn script_folders() -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(repository_root().join(SCRIPTS))? {
        let path = entry?.path();
        if path.join("definition.json").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Folders of the plugins that this program builds. `sallyport plugin build` builds the others, which
/// are in other languages.
fn plugin_folders(source: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in
        fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))?
    {
        let path = entry?.path();
        let is_built_here = path.join("Cargo.toml").is_file() || python::is_python(&path);
        if path.join("plugin.toml").is_file() && is_built_here {
            folders.push(path);
        }
    }
    folders.sort();
    ensure!(!folders.is_empty(), "there is no plugin in {}", source.display());
    Ok(folders)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Copies a file unless the target has the same contents. A new modification time would trigger
/// rebuilds.
fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}
