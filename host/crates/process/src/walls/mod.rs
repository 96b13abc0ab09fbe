//! What a process gives up before it becomes a program: its powers, the machine beyond its limits,
//! all files but those that are granted, and the system's calls that reach past these.
//!
//! 1. It can gain no rights, and loses those of the superuser (`rights`).
//! 2. It has limits of its own (`rlimit`). What is counted over several processes the watcher keeps.
//! 3. Landlock leaves the system's files, the script's folder, a private one and what is granted.
//! 4. seccomp takes sockets, other processes, and what Landlock does not see of files.
//!
//! All of them pass on to whatever the program starts, and none can be taken down again.

mod landlock;
mod rights;
mod rlimit;
mod seccomp;

use std::{io, path::Path};

pub(crate) use rights::close_inherited;

use crate::{
    error::RunError,
    spec::{Spec, Wall, Walls},
};

/// Returns the walls that this kernel cannot give.
pub fn missing() -> Vec<Wall> {
    let mut missing = landlock::missing();
    if !seccomp::is_there() {
        missing.push(Wall::Calls);
    }
    missing
}

/// Puts all walls up around this process, for good.
pub(crate) fn raise(spec: &Spec, scratch: &Path) -> Result<(), RunError> {
    rights::drop_all().map_err(|error| failed(&error))?;
    rlimit::lower(&spec.limits).map_err(|error| failed(&error))?;
    unless_missing(spec.walls, landlock::raise(spec, scratch))?;
    unless_missing(spec.walls, seccomp::raise(spec.network))
}

/// A wall that is missing is no error where that was accepted.
fn unless_missing(walls: Walls, raised: Result<(), RunError>) -> Result<(), RunError> {
    match raised {
        Err(RunError::NoWall { .. }) if walls == Walls::AsAvailable => Ok(()),
        raised => raised,
    }
}

fn failed(error: &io::Error) -> RunError {
    RunError::Stage { message: error.to_string() }
}
