//! The docket of one guest: which run its host calls belong to at this moment.
//!
//! A fresh guest has one run, and so one case. One that lives through a session has many, one after
//! another, and what it keeps open from one to the next asks, charges and writes down on behalf of
//! the present one.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::case::Case;

/// The present case of a guest, for everything that outlives a host call.
pub(crate) struct Docket(Mutex<Entry>);

struct Entry {
    case: Arc<Case>,
    /// What the guest's earlier runs took.
    past: Duration,
    /// The guest's own time while none of its runs goes on.
    resting: Option<Duration>,
}

impl Docket {
    pub(crate) fn of(case: &Arc<Case>) -> Arc<Self> {
        let entry = Entry { case: Arc::clone(case), past: Duration::ZERO, resting: None };
        Arc::new(Self(Mutex::new(entry)))
    }

    /// The run that is going on, or was the last.
    pub(crate) fn case(&self) -> Arc<Case> {
        Arc::clone(&self.entry().case)
    }

    /// Another run begins.
    pub(crate) fn call(&self, next: &Arc<Case>) {
        let mut entry = self.entry();
        entry.past = entry.time();
        entry.resting = None;
        entry.case = Arc::clone(next);
    }

    /// The present run has ended: until the next begins, the guest's own time stands still.
    pub(crate) fn rest(&self) {
        let mut entry = self.entry();
        entry.resting = Some(entry.time());
    }

    /// The guest's own time: it goes on while one of its runs does, and never back.
    pub(crate) fn time(&self) -> Duration {
        self.entry().time()
    }

    /// Waits until the guest's own time has come so far. Only a run can wait.
    pub(crate) async fn reach(&self, time: Duration) {
        let (case, past) = {
            let entry = self.entry();
            (Arc::clone(&entry.case), entry.past)
        };
        case.clock.reach(time.saturating_sub(past)).await;
    }

    /// All fields change together under the lock, so a panic elsewhere leaves them sound.
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
        let grant = Arc::new(Grant::none("guest".parse().unwrap()));
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
