//! Reproducible builds of components: the bytes do not depend on where they are built.
//!
//! Users accept a component by its digest and bind rules to it, so a clone in another folder must
//! not change it. Two things would: the source paths in panic messages, and the identity of crates
//! outside the plugins' workspace. Cargo derives that identity from paths, and it orders the
//! compiler's output. Paths are therefore remapped, and this program wraps the compiler to give
//! such crates an identity of name and version.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{
    build::quiet_flag,
    process::{cargo_command, run_command, run_for_status},
};

/// Target triple of components.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// Environment variable with the folder of the sources. It is set where this program wraps the
/// compiler.
const SOURCES: &str = "SALLYPORT_SOURCES";

/// Separator between the flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// Prefix of the flag that sets a crate's identity.
const METADATA: &str = "metadata=";

/// Builds the components of a workspace. `root` must contain all its sources that do not come from
/// a registry.
pub(crate) fn build_components(root: &Path, workspace: &Path) -> Result<()> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // Cargo ignores remapped paths and the wrapper when it decides whether a build is fresh. This
    // flag separates these builds from older ones.
    let told_apart = "--cfg=built_anywhere".to_owned();
    let flags = [remap(root, "/sallyport"), remap(&cargo_home()?, "/cargo"), told_apart];
    let mut command = cargo_command();
    // Ignore a target folder set for the host: the components are read from the workspace's own.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    command.env("RUSTC_WRAPPER", env::current_exe()?).env(SOURCES, root);
    command.arg("build").args(quiet_flag()).args(["--release", "--target", TARGET]);
    run_command(command.arg("--manifest-path").arg(workspace.join("Cargo.toml")))
}

/// Builds with the folders given on the command line: ROOT and WORKSPACE.
pub(crate) fn build_from_arguments(args: &[String]) -> Result<()> {
    let [root, workspace] = args else { bail!("name the folder of the sources and the workspace") };
    build_components(&std::fs::canonicalize(root)?, &std::fs::canonicalize(workspace)?)
}

/// Runs the compiler if cargo started this program as a wrapper.
pub(crate) fn run_if_compiler() -> Option<ExitCode> {
    let sources = env::var_os(SOURCES)?;
    let mut args = env::args_os().skip(1);
    let compiler = args.next()?;
    let args = replace_identity(args.collect(), &crate_identity(Path::new(&sources)));
    let ended = run_for_status(Command::new(compiler).args(args).env_remove(SOURCES));
    let code = ended.ok().and_then(|status| u8::try_from(status.code()?).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The identity of the crate that is compiled, if its sources are below `sources`.
fn crate_identity(sources: &Path) -> Option<String> {
    let folder = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)?;
    let [name, version] = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(env::var);
    folder.starts_with(sources).then_some(format!("{}-{}", name.ok()?, version.ok()?))
}

fn replace_identity(args: Vec<OsString>, identity: &Option<String>) -> Vec<OsString> {
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
