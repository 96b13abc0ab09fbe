//! The starter: it puts the walls up around itself and becomes the program.
//!
//! The bytes that are hashed are the bytes that run. A native program is started by the descriptor
//! that was hashed. A script is opened once more by its interpreter, by a name, and its name is what
//! it finds its neighbours by; so its name is used, after another look whether it is still the same
//! file. Who could change it in between can write to the script's folder, which no
//! program of this crate can.

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
    error::RunError,
    script::{self, Digest},
    spec::Spec,
    walls,
    wire::{self, Start},
};

/// Where programs are looked for: what every system has.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The language of messages: none, in UTF-8.
const LANG: &str = "C.UTF-8";

/// How a native program begins.
const NATIVE: &[u8; 4] = b"\x7fELF";

/// Where a process finds what it has open.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Where a process says how gladly it is ended when memory runs out, and the most gladly.
const OUT_OF_MEMORY_SCORE: (&str, &str) = ("/proc/self/oom_score_adj", "1000");

/// Works as a starter. It returns only where there is no program.
pub(super) fn work() -> io::Result<()> {
    // Not a byte of the program's own input may be taken.
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let orders: Start = wire::read(&stdin)?;
    drop(stdin);
    die_with(orders.watcher)?;
    let Err(error) = become_program(&orders);
    orders.mark.failed(io::stderr(), &error)
}

/// A program whose watcher was killed would go on for nobody.
fn die_with(watcher: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match getppid().is_some_and(|parent| parent.as_raw_pid() == watcher) {
        true => Ok(()),
        false => Err(io::Error::other("the watcher is gone")),
    }
}

fn become_program(orders: &Start) -> Result<Infallible, RunError> {
    let spec = &orders.spec;
    // Where it cannot be said, the system chooses as it does for all.
    let _ = fs::write(OUT_OF_MEMORY_SCORE.0, OUT_OF_MEMORY_SCORE.1);
    let file = open(spec)?;
    let name = name(&spec.program, &file)?;
    walls::raise(spec, &orders.scratch)?;
    orders.mark.ready(io::stderr()).map_err(|error| cannot_start(spec, &error))?;
    let error = command(spec, name, &orders.scratch).exec();
    Err(cannot_start(spec, &error))
}

/// Opens the program, if it is the one that was read before.
fn open(spec: &Spec) -> Result<File, RunError> {
    let opened = script::open(&spec.program);
    let mut file = opened.map_err(|error| cannot_start(spec, &io::Error::other(error)))?;
    let digest = Digest::of_program(&mut file).map_err(|error| cannot_start(spec, &error))?;
    match digest == Some(spec.digest.clone()) {
        true => Ok(file),
        false => Err(changed(&spec.program)),
    }
}

/// The name by which the opened file is started.
fn name(program: &Path, file: &File) -> Result<PathBuf, RunError> {
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
        _ => Err(changed(program)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the program that a grant allows, behind its walls")]
fn command(spec: &Spec, name: PathBuf, scratch: &Path) -> Command {
    let mut command = Command::new(name);
    command.arg0(&spec.program).current_dir(&spec.folder).env_clear();
    command.env("PATH", PATH).env("LANG", LANG).env("HOME", scratch).env("TMPDIR", scratch);
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    command
}

fn changed(program: &Path) -> RunError {
    RunError::Changed { program: program.display().to_string() }
}

fn cannot_start(spec: &Spec, error: &io::Error) -> RunError {
    RunError::Start { program: spec.program.display().to_string(), message: error.to_string() }
}
