//! The heartbeat of the engines: advances their epochs while guests run, so that a guest that never
//! calls the host can still be interrupted.
//!
//! There is one ticker for all engines, and deadlines belong to stores, so one call's deadline never
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

/// Advances the epochs of engines while at least one [`EpochTickerGuard`] is held.
pub(crate) struct EpochTicker {
    shared: Arc<EpochTickerShared>,
}

#[derive(Default)]
struct EpochTickerShared {
    state: Mutex<EpochTickerState>,
    changed: Condvar,
}

#[derive(Default)]
struct EpochTickerState {
    running: usize,
    closed: bool,
    engines: Vec<Engine>,
}

/// Held by a running guest.
pub(crate) struct EpochTickerGuard(Arc<EpochTickerShared>);

impl EpochTicker {
    /// Starts the thread, which ends when the ticker is dropped.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(EpochTickerShared::default());
        lock_mutex(&shared.state).engines.push(engine);
        let seen = Arc::clone(&shared);
        thread::Builder::new().name("epoch-ticker".into()).spawn(move || {
            while seen.wait_for_guests() {
                thread::sleep(TICK);
                lock_mutex(&seen.state).engines.iter().for_each(Engine::increment_epoch);
            }
        })?;
        Ok(Self { shared })
    }

    /// Advances the epoch of another engine as well.
    pub(crate) fn add_engine(&self, engine: Engine) {
        lock_mutex(&self.shared.state).engines.push(engine);
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
