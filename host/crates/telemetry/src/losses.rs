//! What did not reach the collector: counted always, told once.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// What is sent and can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossKind {
    Spans,
    Logs,
}

/// Counts what was not sent. The operator is told once.
#[derive(Debug)]
pub(crate) struct Losses {
    kind: LossKind,
    address: String,
    queued: AtomicU64,
    /// The queued ones that were sent or lost.
    handled: AtomicU64,
    lost: AtomicU64,
    is_told: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Losses {
    pub(crate) fn new(kind: LossKind, address: String) -> Self {
        Self {
            kind,
            address,
            queued: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_told: AtomicBool::new(false),
            reason: Mutex::new(None),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn note_queued(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// One did not fit into the queue.
    pub(crate) fn note_dropped(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_sent(&self, count: u64, result: Result<(), String>) {
        self.handled.fetch_add(count, Ordering::Relaxed);
        if let Err(reason) = result {
            self.lost.fetch_add(count, Ordering::Relaxed);
            self.reason().get_or_insert(reason);
        }
    }

    /// The program ends before everything was sent.
    pub(crate) fn note_unfinished(&self) {
        let queued = self.queued.load(Ordering::Relaxed);
        let left = queued.saturating_sub(self.handled.load(Ordering::Relaxed));
        self.lost.fetch_add(left, Ordering::Relaxed);
        self.reason().get_or_insert("it did not answer before the end of the program".to_owned());
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The collector takes none of them. That is no reason to warn.
    pub(crate) fn note_not_taken(&self, count: u64) {
        self.handled.fetch_add(count, Ordering::Relaxed);
        self.lost.fetch_add(count, Ordering::Relaxed);
        self.end_warnings();
    }

    /// Gives no warning any more.
    pub(crate) fn end_warnings(&self) {
        self.is_told.store(true, Ordering::Relaxed);
    }

    /// The warning about losses, once.
    pub(crate) fn take_warning(&self) -> Option<String> {
        let lost = self.count();
        if lost == 0 || self.is_told.swap(true, Ordering::Relaxed) {
            return None;
        }
        let reason = self.reason().clone();
        let (one, many) = match self.kind {
            LossKind::Spans => ("span", "spans"),
            LossKind::Logs => ("log record", "log records"),
        };
        let reason = reason.unwrap_or_else(|| format!("it is slower than {many} are made"));
        let records =
            if lost == 1 { format!("1 {one} was") } else { format!("{lost} {many} were") };
        let address = &self.address;
        Some(format!(
            "{records} not sent to the collector at {address}: {reason}. Nothing else is affected, \
             and later losses are not reported. To fix: start the collector, or correct [telemetry] \
             in sallyport.toml"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_once_with_their_number_and_reason() {
        let losses = Losses::new(LossKind::Spans, "http://127.0.0.1:4318".to_owned());
        losses.note_queued();
        losses.note_sent(1, Ok(()));
        assert_eq!(losses.take_warning(), None);
        losses.note_dropped();
        let warning = losses.take_warning().unwrap();
        assert!(warning.starts_with("1 span was not sent"), "{warning}");
        assert!(warning.contains("slower"), "{warning}");
        losses.note_sent(3, Err("it answers 500".to_owned()));
        assert_eq!((losses.count(), losses.take_warning()), (4, None));

        let unfinished = Losses::new(LossKind::Spans, "http://127.0.0.1:4318".to_owned());
        (0..5).for_each(|_| unfinished.note_queued());
        unfinished.note_sent(2, Ok(()));
        unfinished.note_unfinished();
        assert!(unfinished.take_warning().unwrap().starts_with("3 spans were not sent"));
    }

    #[test]
    fn logs_are_counted_by_themselves_and_a_collector_without_them_is_no_failure() {
        let logs = Losses::new(LossKind::Logs, "http://127.0.0.1:4318".to_owned());
        logs.note_queued();
        logs.note_sent(1, Err("it answers 503".to_owned()));
        assert!(logs.take_warning().unwrap().starts_with("1 log record was not sent"));
        let not_taken = Losses::new(LossKind::Logs, "http://127.0.0.1:4318".to_owned());
        not_taken.note_not_taken(3);
        assert_eq!((not_taken.count(), not_taken.take_warning()), (3, None));
    }
}
