//! The run that the host calls of one guest currently belong to.
//!
//! A fresh guest has one run. A guest that lives through a session has many, one
//! after another. Resources that it keeps open between runs ask, charge and record on behalf of the
//! current run.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{mutex::lock_mutex, run_context::RunContext};

/// The current run of a guest, for everything that outlives a host call.
pub(crate) struct CurrentRun(Mutex<CurrentRunState>);

struct CurrentRunState {
    run_context: Arc<RunContext>,
    /// The time of the guest's earlier runs.
    earlier_runs_time: Duration,
    /// The guest's own time while no run is active.
    paused_at: Option<Duration>,
}

impl CurrentRun {
    pub(crate) fn new(run_context: &Arc<RunContext>) -> Arc<Self> {
        let state = CurrentRunState {
            run_context: Arc::clone(run_context),
            earlier_runs_time: Duration::ZERO,
            paused_at: None,
        };
        Arc::new(Self(Mutex::new(state)))
    }

    /// The current run, or the last one.
    pub(crate) fn context(&self) -> Arc<RunContext> {
        Arc::clone(&lock_mutex(&self.0).run_context)
    }

    /// Begins another run.
    pub(crate) fn begin_run(&self, next: &Arc<RunContext>) {
        let mut state = lock_mutex(&self.0);
        state.earlier_runs_time = state.guest_time();
        state.paused_at = None;
        state.run_context = Arc::clone(next);
    }

    /// Ends the current run. The guest's own time pauses until the next run begins.
    pub(crate) fn end_run(&self) {
        let mut state = lock_mutex(&self.0);
        state.paused_at = Some(state.guest_time());
    }

    /// The guest's own time: it advances during its runs and never goes back.
    pub(crate) fn guest_time(&self) -> Duration {
        lock_mutex(&self.0).guest_time()
    }

    /// Waits until the guest's own time reaches `time`. Only a run can wait.
    pub(crate) async fn wait_until(&self, time: Duration) {
        let (run_context, earlier_runs_time) = {
            let state = lock_mutex(&self.0);
            (Arc::clone(&state.run_context), state.earlier_runs_time)
        };
        run_context.clock.wait_until(time.saturating_sub(earlier_runs_time)).await;
    }
}

impl CurrentRunState {
    fn guest_time(&self) -> Duration {
        let running =
            || self.earlier_runs_time.saturating_add(self.run_context.clock.elapsed_time());
        self.paused_at.unwrap_or_else(running)
    }
}

#[cfg(test)]
mod tests {
    use sallyport_policy::Grant;

    use super::*;
    use crate::FixedGrantAuthorizer;

    #[test]
    fn a_guests_time_stands_still_between_its_runs() {
        let pause = Duration::from_millis(20);
        let grant = Arc::new(Grant::empty("guest".parse().unwrap()));
        let run_context = || {
            RunContext::without_call(Arc::new(FixedGrantAuthorizer::new(Arc::clone(&grant))), None)
        };
        let current_run = CurrentRun::new(&run_context());
        std::thread::sleep(pause);
        assert!(current_run.guest_time() >= pause, "it goes on while a run does");
        current_run.end_run();
        let time = current_run.guest_time();
        std::thread::sleep(pause);
        assert_eq!(current_run.guest_time(), time);
        let next = run_context();
        current_run.begin_run(&next);
        assert!(
            current_run.guest_time() - time <= next.clock.elapsed_time(),
            "the pause does not count"
        );
    }
}
