//! What a worker gives up before it reads a byte: the use of the machine beyond its limits, all
//! files and connections, and all of the system's calls but those that computing needs.
//!
//! 1. It has limits of its own (`rlimit`), on every Unix, and on Linux it dies with its parent.
//! 2. Landlock takes away every file, TCP connection and signal to others.
//! 3. seccomp leaves reading the input, writing the answer, and memory that holds no code.
//!
//! The second and third are Linux's. Files, TCP and programs are shut out by each of them alone,
//! every other socket by seccomp. Where the kernel lacks one, the worker works without it and says so
//! in its greeting.
//!
//! A descriptor that the host itself inherited without `O_CLOEXEC` is open in a worker too. seccomp
//! alone makes it useless, because it only allows reads of standard input and writes to standard
//! output and error.

#[cfg(target_os = "linux")]
mod landlock;
mod rlimit;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::{io, thread};

use super::Limits;

/// Most threads of one compilation. Every thread costs memory, and the limit of that is fixed; the
/// eighth saves little time already.
const THREADS_MAX: usize = 8;

/// Whether a wall stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// The system does not have it.
    Missing,
    /// The system has an older form of it, with gaps.
    Partly,
    /// It stands.
    Up,
}

/// The walls around a compilation that not every system has. Its limits hold everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walls {
    /// No file, TCP port or other process can be reached.
    pub landlock: Wall,
    /// The system can be asked for nothing but memory.
    pub seccomp: Wall,
}

impl Walls {
    /// No walls.
    pub const NONE: Self = Self { landlock: Wall::Missing, seccomp: Wall::Missing };
}

/// Puts all walls up around this process, for good.
///
/// # Errors
///
/// A limit cannot be set. Walls that are missing are no error.
pub(super) fn raise(limits: &Limits) -> io::Result<Walls> {
    die_with_parent()?;
    // The system's files say how many threads are worth their while; soon they are out of reach.
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    rlimit::lower(limits)?;
    let landlock = no_files();
    // Threads inherit what Landlock took; after seccomp no more of them can be made.
    start_threads(threads)?;
    rlimit::close()?;
    Ok(Walls { landlock, seccomp: few_calls() })
}

/// A worker whose parent was killed would go on for nobody.
fn die_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn start_threads(threads: usize) -> io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().map_err(io::Error::other)?;
    // Each has begun when each has answered.
    rayon::broadcast(|_| ());
    Ok(())
}

#[cfg(target_os = "linux")]
fn no_files() -> Wall {
    landlock::raise()
}

#[cfg(target_os = "linux")]
fn few_calls() -> Wall {
    seccomp::raise()
}

#[cfg(not(target_os = "linux"))]
fn no_files() -> Wall {
    Wall::Missing
}

#[cfg(not(target_os = "linux"))]
fn few_calls() -> Wall {
    Wall::Missing
}
