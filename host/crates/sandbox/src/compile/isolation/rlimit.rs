//! Resource limits that every Unix supports: processor time, memory, and no files, dumps or
//! children.
//!
//! Each limit is permanent: its hard limit is lowered as well.

use std::io;

use rustix::process::Resource;
use sallyport_walls::rlimit::{fix_limit, lower_limit};

use crate::compile::CompileLimits;

/// Address space in addition to the memory limit, in bytes, for addresses that are reserved and
/// never used. The C library reserves 64 MiB for every thread.
const RESERVED_BYTES: u64 = 1024 * 1024 * 1024;

/// The stack of the first thread, in bytes, which is the default of most systems. Without it, the
/// nesting of a component would be limited only by memory, and the host has to read the result.
const STACK_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Seconds between the signal that ends an honest worker and the one that ends any worker.
const CPU_GRACE_SECONDS: u64 = 2;

/// Sets the limits that apply from the start.
pub(super) fn apply_initial_limits(limits: &CompileLimits) -> io::Result<()> {
    let seconds = limits.cpu_time.as_secs().max(1);
    lower_limit(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
    // Memory that is written to counts as data; memory that is only reserved counts as address
    // space.
    fix_limit(Resource::Data, limits.memory_bytes)?;
    addresses(limits.memory_bytes.saturating_add(RESERVED_BYTES))?;
    fix_limit(Resource::Stack, STACK_BYTES_MAX)?;
    fix_limit(Resource::Fsize, 0)?;
    fix_limit(Resource::Core, 0)
}

#[cfg(target_os = "linux")]
fn addresses(most: u64) -> io::Result<()> {
    fix_limit(Resource::As, most)
}

/// Sets the limit where possible: some systems do not have it, and some count what their own
/// libraries reserve.
#[cfg(not(target_os = "linux"))]
fn addresses(most: u64) -> io::Result<()> {
    #[cfg(not(target_os = "openbsd"))]
    let _ = fix_limit(Resource::As, most);
    let _ = most;
    Ok(())
}

/// Sets the limits that would get in the way of the other walls: no more descriptors or processes.
pub(super) fn apply_final_limits() -> io::Result<()> {
    fix_limit(Resource::Nofile, 0)?;
    fix_limit(Resource::Nproc, 0)
}
