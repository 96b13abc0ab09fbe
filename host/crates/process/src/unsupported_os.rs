//! Stubs for systems other than Linux. They have no walls, so no program starts.

use std::{convert::Infallible, process::ExitCode, time::Duration};

use tokio::net::unix::pipe;

use crate::{ProcessResult, ProcessSpec, ProcessWall, RunError, ServiceExit, StageExecutable};

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

/// A running program, of which there is none on this system.
#[derive(Debug)]
pub struct ServiceProcess(Infallible);

/// The host's ends of a program's pipes.
#[derive(Debug)]
pub struct ServicePipes {
    /// Its standard input.
    pub input: pipe::Sender,
    /// Its standard output.
    pub output: pipe::Receiver,
}

impl ServiceProcess {
    /// Would wait until the program ends.
    ///
    /// # Errors
    ///
    /// Never, because there is no program.
    pub async fn close(self, _: Duration) -> Result<ServiceExit, RunError> {
        match self.0 {}
    }
}

/// Would start a program, which this system cannot confine.
///
/// # Errors
///
/// Always [`RunError::NoWall`].
pub async fn start_service(
    _: &StageExecutable,
    _: &ProcessSpec,
) -> Result<(ServiceProcess, ServicePipes), RunError> {
    Err(RunError::NoWall { missing: walls_missing() })
}
