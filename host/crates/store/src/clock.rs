//! The wall clock, for code whose callers do not pass the time.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Returns the time in milliseconds since 1970. It may step back.
#[derive(Clone)]
pub(crate) struct StoreClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl StoreClock {
    /// The system's clock.
    pub(crate) fn from_system() -> Self {
        Self(Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }))
    }

    /// A clock that a test controls.
    #[cfg(test)]
    pub(crate) fn from_fn(read_clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read_clock))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClock").finish_non_exhaustive()
    }
}
