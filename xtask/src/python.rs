//! Plugins in Python: the compiler that makes components of them, in a virtual environment of its
//! own, and their tests.
//!
//! Neither Python nor a package index is a thing that every machine has. Where one is missing,
//! these plugins are left out, and it is said so; nothing else depends on them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::process::{root, run, status};

/// The interpreter of this machine.
const PYTHON: &str = "python3";

/// The package that makes components, in the one version that is known to do it well.
const COMPILER: &str = "componentize-py";
const COMPILER_VERSION: &str = "0.25.1";

/// What its command is given: the module that exports the world `PLUGIN` of `sallyport:PLUGIN`.
const APP: &str = "app";

/// Where all of it is built.
const BUILD_FOLDER: &str = "target/python";

/// Holds what the component beside it was made of.
const STAMP: &str = "inputs";

/// Files by their path in the folder where a component is built.
type Inputs = BTreeMap<PathBuf, Vec<u8>>;

/// Tells whether a plugin is written in Python.
pub(crate) fn is_python(plugin: &Path) -> bool {
    plugin.join("src").join(APP).with_extension("py").is_file()
}

/// Builds the component of a plugin unless it is there and nothing has changed. Returns where it
/// is, or nothing where it cannot be built on this machine.
pub(crate) fn component(plugin: &Path, name: &str) -> Result<Option<PathBuf>> {
    let folder = root().join(BUILD_FOLDER).join(name);
    let component = folder.join(name).with_extension("wasm");
    let inputs = inputs(plugin)?;
    let stamp = stamp(&inputs);
    if component.is_file() && fs::read(folder.join(STAMP)).is_ok_and(|old| old == stamp) {
        return Ok(Some(component));
    }
    let Some(compiler) = compiler()? else {
        eprintln!("left out: the plugin {name}, which needs {PYTHON} and {COMPILER} to be built");
        return Ok(None);
    };
    lay_out(&folder, &inputs)?;
    compile(&compiler, &folder, name)?;
    fs::write(folder.join(STAMP), stamp)?;
    Ok(Some(component))
}

/// Runs the tests of a plugin on the Python of this machine.
pub(crate) fn test(plugin: &Path) -> Result<()> {
    if !has_python() {
        eprintln!("left out: the tests in {}, which need {PYTHON}", plugin.display());
        return Ok(());
    }
    let mut tests = Command::new(PYTHON);
    // Nothing is left behind in the sources.
    tests.args(["-B", "-m", "unittest", "discover", "--quiet", "--start-directory", "tests"]);
    run(tests.env("PYTHONPATH", "src").current_dir(plugin))
}

fn compile(compiler: &Path, folder: &Path, name: &str) -> Result<()> {
    let world = format!("sallyport:{name}/{name}");
    let component = Path::new(name).with_extension("wasm");
    run(Command::new(compiler)
        .args(["--quiet", "--wit-path", "contract", "--wit-path", "wit", "--world", &world])
        .args(["componentize", "--python-path", "src", APP, "--output"])
        .arg(component)
        // What happens to be installed on this machine is not taken along.
        .env_remove("VIRTUAL_ENV")
        .env_remove("PYTHONPATH")
        .current_dir(folder))
}

/// Returns the compiler, installed if need be.
fn compiler() -> Result<Option<PathBuf>> {
    let folder = root().join(BUILD_FOLDER).join(format!("{COMPILER}-{COMPILER_VERSION}"));
    let compiler = folder.join("bin").join(COMPILER);
    // Its command is the last thing that an installation writes.
    if compiler.is_file() {
        return Ok(Some(compiler));
    }
    if !has_python() || !status(Command::new(PYTHON).args(["-m", "venv"]).arg(&folder))?.success() {
        return Ok(None);
    }
    let mut install = Command::new(folder.join("bin").join(PYTHON));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(["--no-deps", "--only-binary", ":all:"]);
    install.arg(format!("{COMPILER}=={COMPILER_VERSION}"));
    Ok((status(&mut install)?.success() && compiler.is_file()).then_some(compiler))
}

fn has_python() -> bool {
    let mut python = Command::new(PYTHON);
    python.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    status(&mut python).is_ok_and(|status| status.success())
}

fn inputs(plugin: &Path) -> Result<Inputs> {
    let mut inputs = Inputs::new();
    let sources = [(plugin.join("src"), "src"), (plugin.join("wit"), "wit")];
    for (from, to) in sources.into_iter().chain([(root().join("wit"), "contract")]) {
        gather(&from, Path::new(to), &mut inputs)?;
    }
    Ok(inputs)
}

fn gather(from: &Path, to: &Path, inputs: &mut Inputs) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "__pycache__" {
            gather(&path, &to.join(name), inputs)?;
        } else if path.extension().is_some_and(|end| end == "py" || end == "wit") {
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            inputs.insert(to.join(name), bytes);
        }
    }
    Ok(())
}

/// Everything that the component depends on, in a form that can be compared.
fn stamp(inputs: &Inputs) -> Vec<u8> {
    let mut stamp = format!("{COMPILER} {COMPILER_VERSION}\n").into_bytes();
    for (path, bytes) in inputs {
        stamp.extend(format!("{} {}\n", path.display(), bytes.len()).into_bytes());
        stamp.extend(bytes);
    }
    stamp
}

/// Begins anew: a file that is gone from the sources is gone here too.
fn lay_out(folder: &Path, inputs: &Inputs) -> Result<()> {
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
