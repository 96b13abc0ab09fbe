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
}

impl Docket {
    pub(crate) fn of(case: &Arc<Case>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Entry { case: Arc::clone(case), past: Duration::ZERO })))
    }

    /// The run that is going on, or was the last.
    pub(crate) fn case(&self) -> Arc<Case> {
        Arc::clone(&self.entry().case)
    }

    /// Another run begins.
    pub(crate) fn call(&self, next: &Arc<Case>) {
        let mut entry = self.entry();
        entry.past = entry.past.saturating_add(entry.case.clock.time());
        entry.case = Arc::clone(next);
    }

    /// The guest's own time: it goes on while one of its runs does, and never back.
    pub(crate) fn time(&self) -> Duration {
        let entry = self.entry();
        entry.past.saturating_add(entry.case.clock.time())
    }

    /// Waits until the guest's own time has come so far. Only a run can wait.
    pub(crate) async fn reach(&self, time: Duration) {
        let (case, past) = {
            let entry = self.entry();
            (Arc::clone(&entry.case), entry.past)
        };
        case.clock.reach(time.saturating_sub(past)).await;
    }

    /// Both fields change together under the lock, so a panic elsewhere leaves them sound.
    fn entry(&self) -> MutexGuard<'_, Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
