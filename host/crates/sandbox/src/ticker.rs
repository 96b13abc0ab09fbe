//! The heartbeat of an engine: advances its epoch while guests run, so that a guest that never
//! calls the host can still be interrupted.
//!
//! There is one ticker per engine, and deadlines belong to stores, so one call's deadline never
//! ends another call. While no guest runs, the thread sleeps without waking.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use wasmtime::Engine;

use crate::mutex::lock_mutex;

/// The interval of the epoch. A spinning guest is stopped at most this long after its deadline, and
/// yields to others at this interval, so among 20 spinning guests on two processors an honest one
/// waits for its turn for about ten of them.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Advances an engine's epoch while at least one [`EpochTickerGuard`] is held.
#[derive(Debug)]
pub(crate) struct EpochTicker {
    shared: Arc<EpochTickerShared>,
}

#[derive(Debug, Default)]
struct EpochTickerShared {
    state: Mutex<EpochTickerState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct EpochTickerState {
    running: usize,
    closed: bool,
}

/// Held by a running guest.
#[derive(Debug)]
pub(crate) struct EpochTickerGuard(Arc<EpochTickerShared>);

impl EpochTicker {
    /// Starts the thread, which ends when the ticker is dropped.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(EpochTickerShared::default());
        let seen = Arc::clone(&shared);
        thread::Builder::new().name("epoch-ticker".into()).spawn(move || {
            while seen.wait_for_guests() {
                thread::sleep(TICK);
                engine.increment_epoch();
            }
        })?;
        Ok(Self { shared })
    }

    /// Announces a running guest.
    pub(crate) fn register_guest(&self) -> EpochTickerGuard {
        let mut state = lock_mutex(&self.shared.state);
        state.running += 1;
        // The thread sleeps only while no guest runs.
        if state.running == 1 {
            self.shared.changed.notify_one();
        }
        drop(state);
        EpochTickerGuard(Arc::clone(&self.shared))
    }

    /// Whether no guest runs at the moment.
    pub(crate) fn is_idle(&self) -> bool {
        lock_mutex(&self.shared.state).running == 0
    }
}

impl EpochTickerShared {
    /// Waits until a guest runs. Returns false if the ticker is closed.
    fn wait_for_guests(&self) -> bool {
        let state = lock_mutex(&self.state);
        let idle = |state: &mut EpochTickerState| state.running == 0 && !state.closed;
        let state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }
}

impl Drop for EpochTickerGuard {
    fn drop(&mut self) {
        lock_mutex(&self.0.state).running -= 1;
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        lock_mutex(&self.shared.state).closed = true;
        self.shared.changed.notify_one();
    }
}
