//! What is left of runs that have ended: instances that nobody uses any more.
//!
//! To give back the memory of an instance takes about a sixth of a small call. Who runs a call can
//! collect what is left of it, and drop that when the answer is on its way.

use std::{cell::RefCell, fmt};

use crate::run::GuestInstance;

/// Most instances that are collected in one piece of work. Others are given back at once.
const INSTANCES_MAX: usize = 1;

thread_local! {
    /// What has been collected in the work that this thread does.
    static COLLECTED: RefCell<Option<RunLeftovers>> = const { RefCell::new(None) };
}

/// Instances whose run has ended. Dropping them gives back their memory.
#[derive(Default)]
pub struct RunLeftovers(Vec<GuestInstance>);

/// Ends the collection of a thread, also after a panic.
struct Collection;

/// Does a piece of work on this thread, and returns with its result what is left of the runs that end
/// in it.
pub fn collect_leftovers<T>(work: impl FnOnce() -> T) -> (T, RunLeftovers) {
    COLLECTED.set(Some(RunLeftovers::default()));
    let _collection = Collection;
    let done = work();
    (done, COLLECTED.take().unwrap_or_default())
}

/// Drops an instance, or leaves it to the one who collects.
pub(crate) fn drop_or_collect(instance: Option<GuestInstance>) {
    let uncollected = COLLECTED.with_borrow_mut(|collected| match collected {
        Some(RunLeftovers(instances)) if instances.len() < INSTANCES_MAX => {
            instances.extend(instance);
            None
        }
        _ => instance,
    });
    drop(uncollected);
}

impl Drop for Collection {
    fn drop(&mut self) {
        COLLECTED.take();
    }
}

impl fmt::Debug for RunLeftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLeftovers").field("instances", &self.0.len()).finish()
    }
}
