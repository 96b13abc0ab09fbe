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
/// yields to others at this interval.
pub(crate) const TICK: Duration = Duration::from_millis(10);

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
        self.shared.change_state(|state| state.running += 1);
        EpochTickerGuard(Arc::clone(&self.shared))
    }
}

impl EpochTickerShared {
    /// Changes the state. A panic under the lock cannot make these two fields inconsistent.
    fn change_state(&self, change: impl FnOnce(&mut EpochTickerState)) {
        change(&mut lock_mutex(&self.state));
        self.changed.notify_one();
    }

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
        self.0.change_state(|state| state.running -= 1);
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        self.shared.change_state(|state| state.closed = true);
    }
}
