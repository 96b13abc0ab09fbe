//! When this host started.

use std::{
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// The start of this host, in milliseconds since 1970. Plugins that keep data only while a host
/// runs use it to distinguish one host from the next.
static STARTED_MS: LazyLock<u64> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
});

/// Notes the start of this host. Without it, the first question would be taken for the start.
pub(crate) fn note_start() {
    LazyLock::force(&STARTED_MS);
}

/// The start of this host, in milliseconds since 1970.
pub(crate) fn started_ms() -> u64 {
    *STARTED_MS
}
