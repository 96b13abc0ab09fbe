//! Resource limits that the system enforces for each process. They are permanent.

use std::io;

use rustix::process::{Resource, getuid};
use sallyport_walls::rlimit::{fix_limit, lower_limit};

use crate::{process_table, spec::ProcessLimits};

/// Additional address space for reservations that are never used, such as those of JavaScript and
/// Java runtimes. Memory that is written to counts as data and as resident.
const RESERVED_BYTES: u64 = 64 << 30;

/// The time between the signal that a program can handle and the one that it cannot.
const CPU_GRACE_SECONDS: u64 = 1;

/// How many other processes the user may start while a program runs. The system counts all
/// processes of a user; the watcher counts exactly.
const USER_TASKS_MORE: u64 = 256;

/// Sets the limits.
pub(super) fn apply_rlimits(limits: &ProcessLimits) -> io::Result<()> {
    // Rounded up to whole seconds, so that it is not too early; the watcher counts exactly.
    let seconds = limits.cpu_time.as_secs() + u64::from(limits.cpu_time.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    lower_limit(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
    fix_limit(Resource::Data, limits.memory_bytes)?;
    fix_limit(Resource::As, limits.memory_bytes.saturating_add(RESERVED_BYTES))?;
    fix_limit(Resource::Nofile, u64::from(limits.open_files))?;
    fix_limit(Resource::Fsize, limits.file_bytes)?;
    fix_limit(Resource::Core, 0)?;
    // This limit does not apply to the superuser, for whom only the watcher counts.
    let tasks = process_table::count_user_tasks(getuid())?.saturating_add(USER_TASKS_MORE);
    fix_limit(Resource::Nproc, tasks.saturating_add(u64::from(limits.processes)))
}
