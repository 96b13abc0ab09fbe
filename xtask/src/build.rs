//! Set-up and builds: the WebAssembly target, the plugins, the tests' guests, the tests themselves.

use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    fuzz, pages,
    process::{cargo, output, root, run},
    programs, python,
    wasm::{self, TARGET},
};

/// Where the plugins are that are scripts.
pub(crate) const SCRIPTS: &str = "plugins-src/scripts";

/// Adds the WebAssembly target when it is missing.
pub(crate) fn setup() -> Result<()> {
    let installed =
        output(Command::new("rustup").args(["target", "list", "--installed"]).current_dir(root()))
            .context("rustup is needed for the wasm32-wasip2 target; see https://rustup.rs")?;
    if installed.lines().any(|line| line == TARGET) {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", TARGET]).current_dir(root()))
}

/// On a terminal cargo shows what it does; elsewhere its hundreds of lines would hide ours.
pub(crate) fn quiet() -> Option<&'static str> {
    (!std::io::stderr().is_terminal()).then_some("--quiet")
}

/// Builds `plugins-src` and lays the results out as the host expects them: one folder a plugin.
pub(crate) fn plugins() -> Result<()> {
    setup()?;
    eprintln!("building the plugins …");
    let source = root().join("plugins-src");
    wasm::build(&root(), &source)?;
    for folder in plugin_folders(&source)? {
        let name = file_name(&folder);
        let Some(wasm) = component(&folder, &name)? else { continue };
        let target = built(&name);
        fs::create_dir_all(&target)?;
        copy_if_changed(&folder.join("plugin.toml"), &target.join("plugin.toml"))?;
        copy_if_changed(&wasm, &target.join(format!("{name}.wasm")))?;
    }
    Ok(())
}

/// The plugins of this repository that have been built, by name.
pub(crate) fn plugin_names() -> Result<Vec<String>> {
    let folders = plugin_folders(&root().join("plugins-src"))?;
    let names = folders.iter().map(|path| file_name(path));
    Ok(names.filter(|name| built(name).join(format!("{name}.wasm")).is_file()).collect())
}

/// The plugins of this repository that are scripts, by name.
pub(crate) fn script_names() -> Result<Vec<String>> {
    Ok(script_folders()?.iter().map(|path| file_name(path)).collect())
}

/// Builds the program as it is developed, and returns where it is.
pub(crate) fn host() -> Result<PathBuf> {
    eprintln!("building the host …");
    run(cargo().arg("build").args(quiet()).args(["--package", "sallyport"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), Into::into);
    Ok(target.join("debug/sallyport"))
}

/// Builds the components that the integration tests run, those that the documents show among them.
pub(crate) fn guests() -> Result<()> {
    setup()?;
    eprintln!("building the components of the tests …");
    wasm::build(&root(), &root().join("tests/guests"))?;
    wasm::build(&root(), &pages::lay_out()?)
}

/// Sets everything up and runs every test: of the host, of the SDK, and of the plugins natively;
/// and at the end each fuzz target for a moment.
pub(crate) fn test() -> Result<()> {
    programs::install();
    plugins()?;
    guests()?;
    run(cargo().args(["test", "--manifest-path", "plugins-src/Cargo.toml", "--workspace"]))?;
    run(cargo().arg("test").arg("--manifest-path").arg(pages::lay_out()?.join("Cargo.toml")))?;
    python_tests()?;
    run(cargo().args(["test", "--workspace"]))?;
    fuzz::fuzz(&[])
}

/// Where the host finds a plugin.
fn built(name: &str) -> PathBuf {
    root().join("plugins-wasm").join(name)
}

/// The component of a plugin, or nothing where this machine cannot build it.
fn component(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    if python::is_python(folder) {
        return python::component(folder, name);
    }
    let release = root().join("plugins-src/target").join(TARGET).join("release");
    Ok(Some(release.join(format!("{}.wasm", name.replace('-', "_")))))
}

fn python_tests() -> Result<()> {
    let folders = plugin_folders(&root().join("plugins-src"))?;
    let plugins = folders.into_iter().filter(|folder| python::is_python(folder));
    plugins.chain(script_folders()?).try_for_each(|folder| python::test(&folder))
}

/// Plugins that are scripts, and run as they are.
fn script_folders() -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root().join(SCRIPTS))? {
        let path = entry?.path();
        if path.join("definition.json").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

fn plugin_folders(source: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in
        fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))?
    {
        let path = entry?.path();
        if path.join("plugin.toml").is_file() {
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

/// An unchanged file keeps its time, so nothing downstream is disturbed.
fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}
