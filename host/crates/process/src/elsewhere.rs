//! Systems that are not Linux: they have none of the walls, so no program starts.

use std::{path::PathBuf, process::ExitCode};

use crate::{Finished, RunError, Spec, Wall};

/// The program that is started for the stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage(PathBuf);

impl Stage {
    /// Makes stages of the program that is running.
    pub fn this_program() -> Self {
        Self(PathBuf::new())
    }

    /// Makes stages of a program whose `main` begins with [`as_stage`].
    pub fn program(program: PathBuf) -> Self {
        Self(program)
    }
}

/// Works as a stage if this process was started as one, which it is never on this system.
pub fn as_stage() -> Option<ExitCode> {
    None
}

/// Returns the walls that this system cannot give: all of them.
pub fn walls_missing() -> Vec<Wall> {
    vec![Wall::Files, Wall::Signals, Wall::Calls]
}

/// Runs a program, which this system cannot do safely enough.
///
/// # Errors
///
/// Always.
pub async fn run(_: &Stage, _: &Spec, _: &[u8]) -> Result<Finished, RunError> {
    Err(RunError::NoWall { missing: walls_missing() })
}
