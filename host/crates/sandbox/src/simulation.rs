//! What a test of a plugin replaces: the servers that the plugin talks to, and the time of day.
//!
//! Everything else is as in earnest. In particular the grant decides about each request before a
//! simulated server sees it, and the host adds secrets and follows redirects as usual. Only the
//! lookup of the name, the dialled address and TLS are left out, because there is no server.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use wasmtime_wasi::HostWallClock;

use crate::net::SimulatedNetwork;

/// The parts of the world that are simulated. By default none is.
#[derive(Clone, Default)]
pub struct Simulation {
    /// The time of day that every guest sees, and which does not pass.
    pub now: Option<SystemTime>,
    /// Answers all requests in place of servers.
    pub network: Option<Arc<dyn SimulatedNetwork>>,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Simulation");
        shown.field("now", &self.now).field("network", &self.network.is_some()).finish()
    }
}

/// A clock that always shows the same time.
pub(crate) struct StoppedClock(pub(crate) SystemTime);

impl HostWallClock for StoppedClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    /// A time before 1970, which WASI cannot express, is shown as its beginning.
    fn now(&self) -> Duration {
        self.0.duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}
