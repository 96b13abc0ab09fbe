//! The walls: restrictions that a process puts on itself before it becomes a program.
//!
//! 1. It drops all capabilities and can gain no new rights (`privileges`).
//! 2. It has resource limits of its own (`rlimit`). The watcher enforces limits on several
//!    processes.
//! 3. Landlock restricts it to the system's files, the script's folder, a private one and granted
//!    ones.
//! 4. seccomp denies sockets, access to other processes, and file operations that Landlock does not
//!    cover.
//!
//! Descendants inherit all of them, and none can be removed.

mod landlock;
mod privileges;
mod rlimit;
mod seccomp;

use std::{io, path::Path};

pub(crate) use privileges::close_inherited_descriptors;

use crate::{
    error::RunError,
    spec::{MissingWallPolicy, ProcessSpec, ProcessWall},
};

/// Returns the walls that this kernel lacks.
pub fn missing_walls() -> Vec<ProcessWall> {
    let mut missing = landlock::missing_landlock_walls();
    if !seccomp::is_supported() {
        missing.push(ProcessWall::Calls);
    }
    missing
}

/// Raises all walls around this process, permanently.
pub(crate) fn apply_walls(spec: &ProcessSpec, scratch: &Path) -> Result<(), RunError> {
    privileges::drop_capabilities().map_err(|error| stage_error(&error))?;
    rlimit::apply_rlimits(&spec.limits).map_err(|error| stage_error(&error))?;
    tolerate_missing_wall(spec.walls, landlock::apply_landlock(spec, scratch))?;
    tolerate_missing_wall(spec.walls, seccomp::apply_seccomp(spec.network))
}

/// Ignores a missing wall if the specification accepts that.
fn tolerate_missing_wall(
    walls: MissingWallPolicy,
    raised: Result<(), RunError>,
) -> Result<(), RunError> {
    match raised {
        Err(RunError::NoWall { .. }) if walls == MissingWallPolicy::AsAvailable => Ok(()),
        raised => raised,
    }
}

fn stage_error(error: &io::Error) -> RunError {
    RunError::Stage { message: error.to_string() }
}
