//! Stubs for systems other than Linux. They have no walls, so no program starts.

use std::{path::PathBuf, process::ExitCode};

use crate::{Finished, RunError, Spec, Wall};

/// The executable that runs as the stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage(PathBuf);

impl Stage {
    /// Uses the running executable.
    pub fn this_program() -> Self {
        Self(PathBuf::new())
    }

    /// Uses an executable whose `main` begins with [`as_stage`].
    pub fn program(program: PathBuf) -> Self {
        Self(program)
    }
}

/// Runs a stage if this process was started as one. On this system it never was.
pub fn as_stage() -> Option<ExitCode> {
    None
}

/// Returns the walls that this system lacks: all of them.
pub fn walls_missing() -> Vec<Wall> {
    vec![Wall::Files, Wall::Signals, Wall::Calls]
}

/// Would run a program, which this system cannot confine.
///
/// # Errors
///
/// Always [`RunError::NoWall`].
pub async fn run(_: &Stage, _: &Spec, _: &[u8]) -> Result<Finished, RunError> {
    Err(RunError::NoWall { missing: walls_missing() })
}
