//! Reproducible builds of Rust components: the bytes do not depend on where they are built.
//!
//! Users accept a component by its digest and bind rules to it, so a clone in another folder must
//! not change it. Two things would: the source paths in panic messages, and the identity of crates
//! outside the project's workspace, such as the SDK. Cargo derives that identity from paths, and it
//! orders the compiler's output. Paths are therefore remapped, and this program wraps the compiler
//! to give such crates an identity of name and version.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use crate::process;

/// Environment variable with cargo's own folder. It is set where this program wraps the compiler.
const CARGO_FOLDER: &str = "SALLYPORT_WRAPS_COMPILER";

/// Separator between the flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// Prefix of the flag that sets a crate's identity.
const METADATA: &str = "metadata=";

/// Makes a cargo command build the same bytes in every folder. `program` is this program, and each
/// of the folders appears under its name in messages.
pub(crate) fn make_reproducible(
    command: &mut Command,
    program: &Path,
    cargo_home: &Path,
    folders: &[(&Path, &str)],
) {
    let remap = |(from, to): &(&Path, &str)| format!("--remap-path-prefix={}={to}", from.display());
    let cargo_folder = [(cargo_home, "/cargo")];
    let flags = folders.iter().chain(&cargo_folder).map(remap);
    // Cargo ignores remapped paths and the wrapper when it decides whether a build is fresh. This
    // flag separates these builds from others.
    let flags: Vec<String> = flags.chain(["--cfg=built_anywhere".to_owned()]).collect();
    command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    command.env("RUSTC_WRAPPER", program).env(CARGO_FOLDER, cargo_home);
}

/// Runs the compiler if cargo started this program as a wrapper.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo and the wrapped compiler pass these variables"
)]
pub fn run_if_compiler() -> Option<ExitCode> {
    let cargo_home = PathBuf::from(env::var_os(CARGO_FOLDER)?);
    let mut args = env::args_os().skip(1);
    let compiler = args.next()?;
    let folder = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let identity = folder.filter(|folder| !folder.starts_with(cargo_home)).and_then(|_| {
        let [name, version] = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(env::var);
        Some(format!("{}-{}", name.ok()?, version.ok()?))
    });
    let mut compiler = process::command(compiler);
    compiler.args(replace_identity(args.collect(), identity)).env_remove(CARGO_FOLDER);
    let code = compiler.status().ok().and_then(|status| u8::try_from(status.code()?).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn replace_identity(args: Vec<OsString>, identity: Option<String>) -> Vec<OsString> {
    let Some(identity) = identity else { return args };
    let is_identity = |arg: &OsStr| arg.to_str().is_some_and(|arg| arg.starts_with(METADATA));
    let replaced = args.into_iter().map(|arg| match is_identity(&arg) {
        true => OsString::from(format!("{METADATA}{identity}")),
        false => arg,
    });
    replaced.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_identity_is_replaced() {
        let args =
            || ["-C", "metadata=1f", "-C", "extra-filename=-1f"].map(OsString::from).to_vec();
        let replaced = replace_identity(args(), Some("sdk-1.0.0".to_owned()));
        assert_eq!(replaced, ["-C", "metadata=sdk-1.0.0", "-C", "extra-filename=-1f"]);
        assert_eq!(replace_identity(args(), None), args());
    }
}
