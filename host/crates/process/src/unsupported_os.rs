//! Stubs for systems other than Linux. They have no walls, so no program starts.

use std::{path::PathBuf, process::ExitCode};

use crate::{ProcessResult, ProcessSpec, ProcessWall, RunError};

/// The executable that runs as the stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageExecutable(PathBuf);

impl StageExecutable {
    /// Uses the running executable.
    pub fn this_program() -> Self {
        Self(PathBuf::new())
    }

    /// Uses an executable whose `main` begins with [`run_if_stage`].
    pub fn from_path(program: PathBuf) -> Self {
        Self(program)
    }
}

/// Runs a stage if this process was started as one. On this system it never was.
pub fn run_if_stage() -> Option<ExitCode> {
    None
}

/// Returns the walls that this system lacks: all of them.
pub fn walls_missing() -> Vec<ProcessWall> {
    vec![ProcessWall::Files, ProcessWall::Signals, ProcessWall::Calls]
}

/// Would run a program, which this system cannot confine.
///
/// # Errors
///
/// Always [`RunError::NoWall`].
pub async fn run_program(
    _: &StageExecutable,
    _: &ProcessSpec,
    _: &[u8],
) -> Result<ProcessResult, RunError> {
    Err(RunError::NoWall { missing: walls_missing() })
}
