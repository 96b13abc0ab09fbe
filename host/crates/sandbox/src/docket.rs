//! The docket of one guest: the run that its host calls currently belong to.
//!
//! A fresh guest has one run and so one case. A guest that lives through a session has many, one
//! after another. Resources that it keeps open between runs ask, charge and record on behalf of the
//! current run.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::case::Case;

/// The current case of a guest, for everything that outlives a host call.
pub(crate) struct Docket(Mutex<Entry>);

struct Entry {
    case: Arc<Case>,
    /// The time of the guest's earlier runs.
    past: Duration,
    /// The guest's own time while no run is active.
    resting: Option<Duration>,
}

impl Docket {
    pub(crate) fn of(case: &Arc<Case>) -> Arc<Self> {
        let entry = Entry { case: Arc::clone(case), past: Duration::ZERO, resting: None };
        Arc::new(Self(Mutex::new(entry)))
    }

    /// The current run, or the last one.
    pub(crate) fn case(&self) -> Arc<Case> {
        Arc::clone(&self.entry().case)
    }

    /// Begins another run.
    pub(crate) fn call(&self, next: &Arc<Case>) {
        let mut entry = self.entry();
        entry.past = entry.time();
        entry.resting = None;
        entry.case = Arc::clone(next);
    }

    /// Ends the current run. The guest's own time pauses until the next run begins.
    pub(crate) fn rest(&self) {
        let mut entry = self.entry();
        entry.resting = Some(entry.time());
    }

    /// The guest's own time: it advances during its runs and never goes back.
    pub(crate) fn time(&self) -> Duration {
        self.entry().time()
    }

    /// Waits until the guest's own time reaches `time`. Only a run can wait.
    pub(crate) async fn reach(&self, time: Duration) {
        let (case, past) = {
            let entry = self.entry();
            (Arc::clone(&entry.case), entry.past)
        };
        case.clock.reach(time.saturating_sub(past)).await;
    }

    /// Locks the entry. All fields change together under the lock, so a poisoned lock is safe to
    /// use.
    fn entry(&self) -> MutexGuard<'_, Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn time(&self) -> Duration {
        let running = || self.past.saturating_add(self.case.clock.time());
        self.resting.unwrap_or_else(running)
    }
}

#[cfg(test)]
mod tests {
    use sallyport_policy::Grant;

    use super::*;
    use crate::Unattended;

    #[test]
    fn a_guests_time_stands_still_between_its_runs() {
        let pause = Duration::from_millis(20);
        let grant = Arc::new(Grant::empty("guest".parse().unwrap()));
        let case = || Case::of_nobody(Arc::new(Unattended::new(Arc::clone(&grant))), None);
        let docket = Docket::of(&case());
        std::thread::sleep(pause);
        assert!(docket.time() >= pause, "it goes on while a run does");
        docket.rest();
        let time = docket.time();
        std::thread::sleep(pause);
        assert_eq!(docket.time(), time);
        let next = case();
        docket.call(&next);
        assert!(docket.time() - time <= next.clock.time(), "the pause does not count");
    }
}
