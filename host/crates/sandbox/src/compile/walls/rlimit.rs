//! Limits that every Unix keeps: processor time, memory, and no files, dumps or children.
//!
//! Each is set for good: the highest that could be asked for later is lowered with it.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::compile::Limits;

/// What is added to the memory for addresses that are reserved and never used. The C library sets
/// 64 MiB of them aside for every thread.
const RESERVED_BYTES: u64 = 1024 * 1024 * 1024;

/// The stack of the first thread, which is what most systems give. Without an end of it, what is
/// nested could be as deep as the memory is large, and the host has to read what comes out.
const STACK_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// From the signal that ends an honest worker to the one that ends any.
const CPU_GRACE_SECONDS: u64 = 2;

/// Sets the limits that hold from the start.
pub(super) fn lower(limits: &Limits) -> io::Result<()> {
    let seconds = limits.cpu_time.as_secs().max(1);
    set(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
    // What is written to counts as data; what is merely reserved counts as addresses only.
    fix(Resource::Data, limits.memory_bytes)?;
    addresses(limits.memory_bytes.saturating_add(RESERVED_BYTES))?;
    fix(Resource::Stack, STACK_BYTES_MAX)?;
    fix(Resource::Fsize, 0)?;
    fix(Resource::Core, 0)
}

#[cfg(target_os = "linux")]
fn addresses(most: u64) -> io::Result<()> {
    fix(Resource::As, most)
}

/// Some systems do not know this limit, and some count what their own libraries reserve.
#[cfg(not(target_os = "linux"))]
fn addresses(most: u64) -> io::Result<()> {
    #[cfg(not(target_os = "openbsd"))]
    let _ = fix(Resource::As, most);
    let _ = most;
    Ok(())
}

/// Sets the limits that would be in the way of the other walls: no further descriptor, no process.
pub(super) fn close() -> io::Result<()> {
    fix(Resource::Nofile, 0)?;
    fix(Resource::Nproc, 0)
}

fn fix(resource: Resource, most: u64) -> io::Result<()> {
    set(resource, most, most)
}

/// A limit that is lower already stays.
fn set(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let hard = now.maximum.map_or(hard, |maximum| maximum.min(hard));
    let soft = now.current.map_or(soft, |current| current.min(soft)).min(hard);
    Ok(setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })?)
}
