//! Limits that the system keeps for each process by itself. Each is set for good.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use crate::{spec::Limits, stage::table};

/// What is added to the memory for addresses that are reserved and never used, as the runtimes of
/// JavaScript and Java do. What is written to counts as data, and by what is resident.
const RESERVED_BYTES: u64 = 64 << 30;

/// From the signal that ends an honest program to the one that ends any.
const CPU_GRACE_SECONDS: u64 = 1;

/// How many processes the user may start elsewhere while a program runs. The system counts all that
/// a user has; the watcher counts exactly.
const USER_TASKS_MORE: u64 = 256;

/// Sets the limits.
pub(super) fn lower(limits: &Limits) -> io::Result<()> {
    // In whole seconds, and not before the time is over; the watcher counts exactly.
    let seconds = limits.cpu_time.as_secs() + u64::from(limits.cpu_time.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    set(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
    fix(Resource::Data, limits.memory_bytes)?;
    fix(Resource::As, limits.memory_bytes.saturating_add(RESERVED_BYTES))?;
    fix(Resource::Nofile, u64::from(limits.open_files))?;
    fix(Resource::Fsize, limits.file_bytes)?;
    fix(Resource::Core, 0)?;
    // The superuser is not counted; the watcher's count is all that holds for it.
    let tasks = table::tasks_of(getuid())?.saturating_add(USER_TASKS_MORE);
    fix(Resource::Nproc, tasks.saturating_add(u64::from(limits.processes)))
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
