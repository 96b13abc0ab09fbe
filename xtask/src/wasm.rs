//! Builds of components that are the same bytes wherever they are built.
//!
//! A component's digest is what people accept and what their rules are bound to, so a clone in
//! another folder must not change it. Two things would: the paths of sources, which panics name, and
//! the identity of crates outside the workspace of the plugins, which cargo derives from their paths
//! and which orders what the compiler writes. Paths are remapped, and the compiler is started through
//! this very program, which gives such crates an identity made of name and version.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{
    build::quiet,
    process::{cargo, run, status},
};

/// What components are compiled for.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// Set where this program is started in place of the compiler: the folder of the sources.
const SOURCES: &str = "SALLYPORT_SOURCES";

/// Between the flags for the compiler, as cargo wants them.
const SEPARATOR: &str = "\u{1f}";

/// The beginning of the flag by which a crate gets its identity.
const METADATA: &str = "metadata=";

/// Builds the components of a workspace. All its sources that are not from a registry are below
/// `root`.
pub(crate) fn build(root: &Path, workspace: &Path) -> Result<()> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // Cargo asks neither about remapped paths nor about who starts the compiler when it looks whether
    // something has to be built again; what an older build left behind is told apart by this.
    let told_apart = "--cfg=built_anywhere".to_owned();
    let flags = [remap(root, "/sallyport"), remap(&cargo_home()?, "/cargo"), told_apart];
    let mut command = cargo();
    // A target folder that somebody set for the host would be looked for in vain afterwards.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    command.env("RUSTC_WRAPPER", env::current_exe()?).env(SOURCES, root);
    command.arg("build").args(quiet()).args(["--release", "--target", TARGET]);
    run(command.arg("--manifest-path").arg(workspace.join("Cargo.toml")))
}

/// The same for folders that are named at the command line.
pub(crate) fn build_named(args: &[String]) -> Result<()> {
    let [root, workspace] = args else { bail!("name the folder of the sources and the workspace") };
    build(&std::fs::canonicalize(root)?, &std::fs::canonicalize(workspace)?)
}

/// Runs the compiler if that is what this program was started for.
pub(crate) fn as_compiler() -> Option<ExitCode> {
    let sources = env::var_os(SOURCES)?;
    let mut args = env::args_os().skip(1);
    let compiler = args.next()?;
    let args = with_identity(args.collect(), &identity(Path::new(&sources)));
    let ended = status(Command::new(compiler).args(args).env_remove(SOURCES));
    let code = ended.ok().and_then(|status| u8::try_from(status.code()?).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The identity of the crate that is compiled, if its sources are our own.
fn identity(sources: &Path) -> Option<String> {
    let folder = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)?;
    let [name, version] = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(env::var);
    folder.starts_with(sources).then_some(format!("{}-{}", name.ok()?, version.ok()?))
}

fn with_identity(args: Vec<OsString>, identity: &Option<String>) -> Vec<OsString> {
    let Some(identity) = identity else { return args };
    let is_identity = |arg: &OsStr| arg.to_str().is_some_and(|arg| arg.starts_with(METADATA));
    let replaced = args.into_iter().map(|arg| match is_identity(&arg) {
        true => OsString::from(format!("{METADATA}{identity}")),
        false => arg,
    });
    replaced.collect()
}

fn cargo_home() -> Result<PathBuf> {
    let own = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(own);
    home.context("neither CARGO_HOME nor HOME is set")
}
