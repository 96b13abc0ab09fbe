//! The heartbeat of the engines: advances their epochs while guests run, so that a guest that never
//! calls the host can still be interrupted.
//!
//! There is one ticker for all engines, and deadlines belong to stores, so one call's deadline never
//! ends another call. A moment after the last guest has ended, the thread sleeps without waking.

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

/// Ticks for which the thread goes on after the last guest. Calls often follow one another at once, and
/// to wake the thread costs each of them time.
const TICKS_AFTER_GUEST: u32 = 20;

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
    /// Ticks without a guest until the thread sleeps.
    ticks_left: u32,
    /// Whether the thread sleeps until a guest runs.
    is_asleep: bool,
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
                lock_mutex(&seen.state).advance_epochs();
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
        state.ticks_left = TICKS_AFTER_GUEST;
        let wakes_thread = std::mem::take(&mut state.is_asleep);
        drop(state);
        if wakes_thread {
            self.shared.changed.notify_one();
        }
        EpochTickerGuard(Arc::clone(&self.shared))
    }

    /// Whether no guest runs at the moment.
    pub(crate) fn is_idle(&self) -> bool {
        lock_mutex(&self.shared.state).running == 0
    }
}

impl EpochTickerShared {
    /// Waits until a guest runs, unless one ran a moment ago. Returns false if the ticker is closed.
    fn wait_for_guests(&self) -> bool {
        let mut state = lock_mutex(&self.state);
        state.is_asleep = state.running == 0 && state.ticks_left == 0;
        let asleep = |state: &mut EpochTickerState| state.is_asleep && !state.closed;
        let state = self.changed.wait_while(state, asleep).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }
}

impl EpochTickerState {
    fn advance_epochs(&mut self) {
        self.engines.iter().for_each(Engine::increment_epoch);
        if self.running == 0 {
            self.ticks_left = self.ticks_left.saturating_sub(1);
        }
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
