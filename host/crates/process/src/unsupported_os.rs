//! Stubs for systems other than Linux. They have no walls, so no program starts.

use std::process::ExitCode;

use crate::{ProcessResult, ProcessSpec, ProcessWall, RunError, StageExecutable};

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
