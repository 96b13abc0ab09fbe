//! What happened on a connection besides its answers, for its owner.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use sallyport_contract::text;

/// Most remarks that wait for the owner. A server that causes more is not heard any more.
const REMARKS_MAX: usize = 20;

/// Longest remark, in characters.
const REMARK_CHARS_MAX: usize = 300;

/// The events of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionJournal {
    remarks: Mutex<Vec<String>>,
    fault: Mutex<Option<String>>,
    tools_changed: AtomicBool,
}

impl ConnectionJournal {
    /// Notes a remark, unless the same one waits already.
    pub(crate) fn add_remark(&self, remark: &str) {
        let remark = text::escape_excerpt(remark, REMARK_CHARS_MAX);
        let mut remarks = lock(&self.remarks);
        if remarks.len() < REMARKS_MAX && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }

    /// Returns the remarks since the last time.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
    }

    /// Notes why the connection is ended from this side. The first reason counts.
    pub(crate) fn set_fault(&self, fault: String) {
        lock(&self.fault).get_or_insert(fault);
    }

    /// Why the connection was ended from this side, if it was.
    pub(crate) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// Notes that the server has other tools now.
    pub(crate) fn note_changed_tools(&self) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    /// Whether the server has reported other tools since the last time.
    pub(crate) fn take_changed_tools(&self) -> bool {
        self.tools_changed.swap(false, Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
