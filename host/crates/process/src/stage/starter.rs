//! The starter: raises the walls around itself and becomes the program.
//!
//! The bytes that are hashed are the bytes that run. A native program is started from the
//! descriptor that was hashed. A script is opened again by its interpreter, by its path, which the
//! script also uses to find its neighbours. So the path is used, after a check that it is still the
//! same file. Replacing it in between needs write access to the script's folder, which no program
//! of this crate has.

use std::{
    convert::Infallible,
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            fs::{FileExt, MetadataExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::{
    digest::ScriptDigest,
    error::RunError,
    script_file::open_regular_file,
    spec::ProcessSpec,
    walls,
    wire::{self, StarterRequest},
};

/// The search path for programs. Every system has these folders.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The locale: no language, UTF-8.
const LANG: &str = "C.UTF-8";

/// The first bytes of a native program.
const NATIVE: &[u8; 4] = b"\x7fELF";

/// The folder of a process's open descriptors.
const DESCRIPTORS: &str = "/proc/self/fd";

/// The file that sets how readily the system kills a process when memory runs out, and its highest
/// value.
const OUT_OF_MEMORY_SCORE: (&str, &str) = ("/proc/self/oom_score_adj", "1000");

/// Runs as the starter. Returns only if the program did not start.
pub(super) fn run_starter() -> io::Result<()> {
    // Unbuffered, so that no byte of the program's own input is consumed.
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let request: StarterRequest = wire::read_frame(&stdin)?;
    drop(stdin);
    exit_with_parent(request.watcher)?;
    let Err(error) = exec_program(&request);
    request.mark.write_failure(io::stderr(), &error)
}

/// Ends this process with its watcher. Without one, its result would be lost.
fn exit_with_parent(watcher: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match getppid().is_some_and(|parent| parent.as_raw_pid() == watcher) {
        true => Ok(()),
        false => Err(io::Error::other("the watcher is gone")),
    }
}

fn exec_program(request: &StarterRequest) -> Result<Infallible, RunError> {
    let spec = &request.spec;
    // If this fails, the system's default applies.
    let _ = fs::write(OUT_OF_MEMORY_SCORE.0, OUT_OF_MEMORY_SCORE.1);
    let file = open_verified_program(spec)?;
    let name = executable_path(&spec.program, &file)?;
    walls::apply_walls(spec, &request.scratch)?;
    request.mark.write_ready(io::stderr()).map_err(|error| start_error(spec, &error))?;
    let error = program_command(spec, name, &request.scratch).exec();
    Err(start_error(spec, &error))
}

/// Opens the program, if it is the one that was read before.
fn open_verified_program(spec: &ProcessSpec) -> Result<File, RunError> {
    let opened = open_regular_file(&spec.program);
    let mut file = opened.map_err(|error| start_error(spec, &io::Error::other(error)))?;
    let digest =
        ScriptDigest::hash_program(&mut file).map_err(|error| start_error(spec, &error))?;
    match digest == Some(spec.digest.clone()) {
        true => Ok(file),
        false => Err(program_changed_error(&spec.program)),
    }
}

/// Returns the path by which the open file is started.
fn executable_path(program: &Path, file: &File) -> Result<PathBuf, RunError> {
    let mut begins = [0; NATIVE.len()];
    let is_native = file.read_exact_at(&mut begins, 0).is_ok() && begins == *NATIVE;
    if is_native {
        return Ok(Path::new(DESCRIPTORS).join(file.as_raw_fd().to_string()));
    }
    let same = |named: &fs::Metadata, opened: &fs::Metadata| {
        (named.dev(), named.ino()) == (opened.dev(), opened.ino())
    };
    match (fs::metadata(program), file.metadata()) {
        (Ok(named), Ok(opened)) if same(&named, &opened) => Ok(program.to_owned()),
        _ => Err(program_changed_error(program)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the program that a grant allows, behind its walls")]
fn program_command(spec: &ProcessSpec, name: PathBuf, scratch: &Path) -> Command {
    let mut command = Command::new(name);
    let folder = spec.folder.as_deref().unwrap_or(scratch);
    command.arg0(&spec.program).args(&spec.arguments).current_dir(folder).env_clear();
    command.env("PATH", PATH).env("LANG", LANG).env("HOME", scratch).env("TMPDIR", scratch);
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    command
}

fn program_changed_error(program: &Path) -> RunError {
    RunError::Changed { program: program.display().to_string() }
}

fn start_error(spec: &ProcessSpec, error: &io::Error) -> RunError {
    RunError::Start { program: spec.program.display().to_string(), message: error.to_string() }
}
