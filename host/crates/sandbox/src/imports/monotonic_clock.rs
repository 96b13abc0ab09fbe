//! `wasi:clocks/monotonic-clock`: the guest's own time, which begins with its first run.
//!
//! It is the clock of the run itself, so it pauses while the user is asked. Otherwise a guest that
//! waits for a response with its own timeout would give up while the user is still deciding. It
//! also pauses between two runs of one guest.

use std::{sync::Arc, time::Duration};

use wasmtime::component::Resource;
use wasmtime_wasi::{
    async_trait,
    p2::{DynPollable, Pollable, bindings::clocks::monotonic_clock::Host, subscribe},
};

use crate::{current_run::CurrentRun, guest::Guest};

/// A pollable that becomes ready at a time on the guest's clock.
struct ClockPollable {
    current_run: Arc<CurrentRun>,
    at: Duration,
    /// Whether to yield once, so that a guest that keeps waiting for a time in the past does not
    /// starve other tasks.
    yields_once: bool,
}

#[async_trait]
impl Pollable for ClockPollable {
    async fn ready(&mut self) {
        if std::mem::take(&mut self.yields_once) {
            tokio::task::yield_now().await;
        }
        self.current_run.wait_until(self.at).await;
    }
}

impl Guest {
    fn create_clock_pollable(&mut self, at: Duration) -> wasmtime::Result<Resource<DynPollable>> {
        let current_run = Arc::clone(&self.current_run);
        let yields_once = at <= current_run.guest_time();
        let timer = self.table.push(ClockPollable { current_run, at, yields_once })?;
        subscribe(&mut self.table, timer)
    }
}

impl Host for Guest {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::try_from(self.current_run.guest_time().as_nanos()).unwrap_or(u64::MAX))
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.create_clock_pollable(Duration::from_nanos(when))
    }

    fn subscribe_duration(&mut self, wait: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let at = self.current_run.guest_time().saturating_add(Duration::from_nanos(wait));
        self.create_clock_pollable(at)
    }
}
