//! The time of this machine.

use std::time::SystemTime;

/// Returns the time in milliseconds since 1970. It may step back.
pub(crate) fn current_time_ms() -> u64 {
    let elapsed = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
