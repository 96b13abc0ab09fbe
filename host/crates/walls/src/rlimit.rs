//! Limits on the resources of a process, on every Unix.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lowers both limits of a resource, in the unit of the resource. A current limit that is lower is
/// kept. The hard limit makes it permanent.
///
/// # Errors
///
/// The system refuses the limit.
pub fn lower_limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let hard = now.maximum.map_or(hard, |maximum| maximum.min(hard));
    let soft = now.current.map_or(soft, |current| current.min(soft)).min(hard);
    Ok(setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })?)
}

/// Lowers both limits of a resource to the same value.
///
/// # Errors
///
/// The system refuses the limit.
pub fn fix_limit(resource: Resource, limit: u64) -> io::Result<()> {
    lower_limit(resource, limit, limit)
}
