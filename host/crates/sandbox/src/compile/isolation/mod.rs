//! The privileges that a worker drops before it reads its input: use of the machine beyond its
//! limits, all files and connections, and all system calls except those that computing needs.
//!
//! 1. Resource limits apply on every Unix (`rlimit`). On Linux, the worker also dies with its
//!    parent.
//! 2. Landlock denies every file, every TCP connection and signals to other processes.
//! 3. seccomp allows little more than reading the input, writing the reply, and memory that is not
//!    executable.
//!
//! Landlock and seccomp exist on Linux only. Each of them alone denies files, TCP and other
//! programs; seccomp denies every other socket as well. If the kernel lacks one, the worker runs
//! without it and reports that in its greeting.
//!
//! A descriptor that the host itself inherited without `O_CLOEXEC` is open in a worker too. Only
//! seccomp makes it useless, by allowing only reads of standard input and writes to standard output
//! and error.

#[cfg(target_os = "linux")]
mod landlock;
mod rlimit;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::{io, thread};

use super::CompileLimits;

/// Most threads of one compilation. Each thread costs memory, which is limited, and beyond eight
/// they save little time.
const THREADS_MAX: usize = 8;

/// Whether a wall is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLayerStatus {
    /// The system does not support it.
    Missing,
    /// The system supports an older version of it, with gaps.
    Partial,
    /// The wall is up.
    Active,
}

/// The walls around a compilation that not every system has. The resource limits apply everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompilerIsolation {
    /// Denies files, TCP ports and other processes.
    pub landlock: IsolationLayerStatus,
    /// Denies all system calls except those that computing needs.
    pub seccomp: IsolationLayerStatus,
}

impl CompilerIsolation {
    /// No walls.
    pub const NONE: Self =
        Self { landlock: IsolationLayerStatus::Missing, seccomp: IsolationLayerStatus::Missing };
}

/// Raises all walls around this process, irrevocably.
///
/// # Errors
///
/// A limit cannot be set. A missing wall is not an error.
pub(super) fn apply_isolation(limits: &CompileLimits) -> io::Result<CompilerIsolation> {
    die_with_parent()?;
    // Read now: the count comes from system files that are out of reach soon.
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    rlimit::apply_initial_limits(limits)?;
    #[cfg(target_os = "linux")]
    let landlock = landlock::apply_landlock();
    // Threads inherit the Landlock rules. They start now, because seccomp and the limit on
    // processes forbid new ones.
    start_threads(threads)?;
    rlimit::apply_final_limits()?;
    #[cfg(target_os = "linux")]
    return Ok(CompilerIsolation { landlock, seccomp: seccomp::apply_seccomp() });
    #[cfg(not(target_os = "linux"))]
    Ok(CompilerIsolation::NONE)
}

/// Makes the worker die with its parent. Otherwise it would work on without a reader.
fn die_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn start_threads(threads: usize) -> io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().map_err(io::Error::other)?;
    // Returns when every thread has responded, so each one has started.
    rayon::broadcast(|_| ());
    Ok(())
}
