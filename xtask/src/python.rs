//! Python plugins: their compiler in a virtual environment, and their tests.
//!
//! Not every machine has Python and a package index. Without them these plugins are skipped with a
//! message. Nothing else depends on them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::process::{repository_root, run_command, run_for_status};

/// Name of the machine's interpreter.
const PYTHON: &str = "python3";

/// The package that builds components, pinned to a version that is known to work.
const COMPILER: &str = "componentize-py";
const COMPILER_VERSION: &str = "0.25.1";

/// Argument of the compiler: the module that exports the world `PLUGIN` of `sallyport:PLUGIN`.
const APP: &str = "app";

/// Folder of all builds.
const BUILD_FOLDER: &str = "target/python";

/// File with the inputs of the component next to it.
const STAMP: &str = "inputs";

/// File contents by path in the folder where a component is built.
type Inputs = BTreeMap<PathBuf, Vec<u8>>;

/// Whether a plugin is written in Python.
pub(crate) fn is_python(plugin: &Path) -> bool {
    plugin.join("src").join(APP).with_extension("py").is_file()
}

/// Builds the component of a plugin unless it is up to date.
///
/// Returns its path, or `None` if this machine cannot build it.
pub(crate) fn build_component(plugin: &Path, name: &str) -> Result<Option<PathBuf>> {
    let folder = repository_root().join(BUILD_FOLDER).join(name);
    let component = folder.join(name).with_extension("wasm");
    let inputs = read_inputs(plugin)?;
    let stamp = build_stamp(&inputs);
    if component.is_file() && fs::read(folder.join(STAMP)).is_ok_and(|old| old == stamp) {
        return Ok(Some(component));
    }
    let Some(compiler) = find_or_install_compiler()? else {
        eprintln!("left out: the plugin {name}, which needs {PYTHON} and {COMPILER} to be built");
        return Ok(None);
    };
    write_inputs(&folder, &inputs)?;
    compile_component(&compiler, &folder, name)?;
    fs::write(folder.join(STAMP), stamp)?;
    Ok(Some(component))
}

/// Runs the tests of a plugin with this machine's Python.
pub(crate) fn run_tests(plugin: &Path) -> Result<()> {
    if !has_python() {
        eprintln!("left out: the tests in {}, which need {PYTHON}", plugin.display());
        return Ok(());
    }
    let mut tests = Command::new(PYTHON);
    // `-B` keeps bytecode files out of the sources.
    tests.args(["-B", "-m", "unittest", "discover", "--quiet", "--start-directory", "tests"]);
    run_command(tests.env("PYTHONPATH", "src").current_dir(plugin))
}

fn compile_component(compiler: &Path, folder: &Path, name: &str) -> Result<()> {
    let world = format!("sallyport:{name}/{name}");
    let component = Path::new(name).with_extension("wasm");
    run_command(
        Command::new(compiler)
            .args(["--quiet", "--wit-path", "contract", "--wit-path", "wit", "--world", &world])
            .args(["componentize", "--python-path", "src", APP, "--output"])
            .arg(component)
            // Ignore this machine's own packages, because they would end up in the component.
            .env_remove("VIRTUAL_ENV")
            .env_remove("PYTHONPATH")
            .current_dir(folder),
    )
}

/// Returns the compiler and installs it if necessary, or `None` if that fails.
fn find_or_install_compiler() -> Result<Option<PathBuf>> {
    let folder =
        repository_root().join(BUILD_FOLDER).join(format!("{COMPILER}-{COMPILER_VERSION}"));
    let compiler = folder.join("bin").join(COMPILER);
    // An installation writes the command last, so its presence means that the installation is
    // complete.
    if compiler.is_file() {
        return Ok(Some(compiler));
    }
    if !has_python()
        || !run_for_status(Command::new(PYTHON).args(["-m", "venv"]).arg(&folder))?.success()
    {
        return Ok(None);
    }
    let mut install = Command::new(folder.join("bin").join(PYTHON));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(["--no-deps", "--only-binary", ":all:"]);
    install.arg(format!("{COMPILER}=={COMPILER_VERSION}"));
    Ok((run_for_status(&mut install)?.success() && compiler.is_file()).then_some(compiler))
}

fn has_python() -> bool {
    let mut python = Command::new(PYTHON);
    python.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    run_for_status(&mut python).is_ok_and(|status| status.success())
}

fn read_inputs(plugin: &Path) -> Result<Inputs> {
    let mut inputs = Inputs::new();
    let sources = [(plugin.join("src"), "src"), (plugin.join("wit"), "wit")];
    for (from, to) in sources.into_iter().chain([(repository_root().join("wit"), "contract")]) {
        collect_inputs(&from, Path::new(to), &mut inputs)?;
    }
    Ok(inputs)
}

fn collect_inputs(from: &Path, to: &Path, inputs: &mut Inputs) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "__pycache__" {
            collect_inputs(&path, &to.join(name), inputs)?;
        } else if path.extension().is_some_and(|end| end == "py" || end == "wit") {
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            inputs.insert(to.join(name), bytes);
        }
    }
    Ok(())
}

/// Everything that the component depends on, in a form that can be compared.
fn build_stamp(inputs: &Inputs) -> Vec<u8> {
    let mut stamp = format!("{COMPILER} {COMPILER_VERSION}\n").into_bytes();
    for (path, bytes) in inputs {
        stamp.extend(format!("{} {}\n", path.display(), bytes.len()).into_bytes());
        stamp.extend(bytes);
    }
    stamp
}

/// Writes the inputs into an empty folder, so files deleted from the sources disappear here too.
fn write_inputs(folder: &Path, inputs: &Inputs) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    for (path, bytes) in inputs {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}
