//! The walls: restrictions that a process puts on itself before it becomes a program.
//!
//! 1. It drops all capabilities and can gain no new rights (`rights`).
//! 2. It has resource limits of its own (`rlimit`). The watcher enforces limits on several
//!    processes.
//! 3. Landlock restricts it to the system's files, the script's folder, a private one and granted
//!    ones.
//! 4. seccomp denies sockets, access to other processes, and file operations that Landlock does not
//!    cover.
//!
//! Descendants inherit all of them, and none can be removed.

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

/// Returns the walls that this kernel lacks.
pub fn missing() -> Vec<Wall> {
    let mut missing = landlock::missing();
    if !seccomp::is_there() {
        missing.push(Wall::Calls);
    }
    missing
}

/// Raises all walls around this process, permanently.
pub(crate) fn raise(spec: &Spec, scratch: &Path) -> Result<(), RunError> {
    rights::drop_all().map_err(|error| failed(&error))?;
    rlimit::lower(&spec.limits).map_err(|error| failed(&error))?;
    unless_missing(spec.walls, landlock::raise(spec, scratch))?;
    unless_missing(spec.walls, seccomp::raise(spec.network))
}

/// Ignores a missing wall if the specification accepts that.
fn unless_missing(walls: Walls, raised: Result<(), RunError>) -> Result<(), RunError> {
    match raised {
        Err(RunError::NoWall { .. }) if walls == Walls::AsAvailable => Ok(()),
        raised => raised,
    }
}

fn failed(error: &io::Error) -> RunError {
    RunError::Stage { message: error.to_string() }
}
