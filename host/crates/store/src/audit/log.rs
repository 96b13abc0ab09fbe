//! The writing side of the audit: callers hand records over, and a thread writes them.
//!
//! [`AuditLog::append`] takes a record. A call that may change or leak something then waits until
//! the record is on the disk ([`AuditLog::wait_until_durable`]); a call that can do neither does
//! not wait. While the thread cannot write, no new record is accepted, because an action that
//! cannot be recorded must not be performed. Records of actions that have already happened are
//! kept. A caller that wants to continue makes the thread try again.

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    AuditWriter,
    problem::AuditProblem,
    record::{AuditRecord, QueuedRecord},
    writer::AuditWriterThread,
};
use crate::error::StoreError;

/// Most items in the queue. Thousands of calls can end while the disk is busy for a second; a
/// caller that is further ahead has to wait.
const QUEUE_RECORDS_MAX: usize = 4096;

/// Number of queued records at which the thread stops waiting for more.
pub(super) const GROUP_RECORDS: usize = QUEUE_RECORDS_MAX / 4;

/// How long a dropped log waits for its last records. Longer than the wait for another process, so
/// only a disk that hangs loses records.
const DROP_WAIT_MS: u64 = 10_000;

/// Why a record is not, or may not be, in the audit.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The log cannot be written at the moment.
    #[error("the audit cannot be written: {0}")]
    Failed(Arc<StoreError>),
    /// Too many records are waiting to be written.
    #[error("{records_max} records of the audit wait to be written, no more are taken")]
    QueueFull {
        /// How many may wait.
        records_max: usize,
    },
    /// Records were not written in time.
    #[error("{records} records of the audit are not written after {waited:?}")]
    TimedOut {
        /// How many are left.
        records: u64,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The thread that writes has ended.
    #[error("the audit is no longer written")]
    Ended,
}

/// The audit as its writers see it.
///
/// Dropping it writes the remaining records. A process that ends without dropping it must call
/// [`flush`](Self::flush) first.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<SharedWriteQueue>,
    writer: Option<JoinHandle<()>>,
}

/// Receives the result of an item, once.
type DurabilityCallback = Box<dyn FnOnce(Result<(), AuditError>) + Send>;

/// Something for the thread to write.
#[derive(Default)]
pub(super) struct WriteQueueItem {
    /// The record; `None` if the caller only waits for earlier records.
    pub(super) record: Option<QueuedRecord>,
    /// Receives the result once the item is on the disk.
    pub(super) on_durable: Option<DurabilityCallback>,
}

/// State that the log and its thread share.
#[derive(Default)]
pub(super) struct SharedWriteQueue {
    state: Mutex<WriteQueueState>,
    /// Wakes the thread when there is work.
    pub(super) work: Condvar,
}

#[derive(Default)]
pub(super) struct WriteQueueState {
    pub(super) queue: VecDeque<WriteQueueItem>,
    /// Records that were accepted and are not written yet.
    unwritten: u64,
    /// The thread is waiting and has to be woken.
    pub(super) is_idle: bool,
    /// A caller is waiting for the queue.
    pub(super) is_urgent: bool,
    /// Why the last attempt failed, if it did.
    failure: Option<AuditError>,
    /// A caller has asked for another attempt since the failure.
    is_retried: bool,
    /// The thread has ended.
    has_ended: bool,
    pub(super) is_closing: bool,
    warnings: Vec<AuditProblem>,
}

impl AuditError {
    /// Returns what the user can do about the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Failed(error) => error.hint(),
            Self::QueueFull { .. } | Self::TimedOut { .. } => {
                Some("check whether the disk is busy, or another process holds the audit".into())
            }
            Self::Ended => Some("start again".into()),
        }
    }
}

impl AuditLog {
    /// Starts the thread, which opens the database immediately.
    pub fn start(writer: Box<dyn AuditWriter>) -> Self {
        let shared = Arc::new(SharedWriteQueue::default());
        let thread =
            AuditWriterThread { shared: Arc::clone(&shared), writer, unsynced_since: None };
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(move || thread.run());
        if writer.is_err() {
            shared.close_queue();
        }
        Self { shared, writer: writer.ok() }
    }

    /// Accepts a record without waiting. The record is written within some milliseconds.
    ///
    /// # Errors
    ///
    /// An earlier record could not be written, or too many are waiting. The record is not accepted
    /// then.
    pub fn append(&self, record: AuditRecord) -> Result<(), AuditError> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.shared
            .enqueue_item(WriteQueueItem { record: Some(record.into()), on_durable: None }, true)
    }

    /// Accepts a record as soon as that is possible: after a failure, it makes the thread try again,
    /// and if too many records are waiting, it waits until those are on the disk. The record stays
    /// with the caller until it is accepted, so a caller that stops waiting still has it.
    ///
    /// # Errors
    ///
    /// The audit cannot be written. The record is not accepted then.
    pub async fn append_when_possible(
        &self,
        record: &mut Option<AuditRecord>,
    ) -> Result<(), AuditError> {
        let must_wait = {
            let state = self.shared.lock_state();
            state.has_failed() || state.is_full()
        };
        if must_wait {
            self.wait_until_durable().await?;
        }
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        // Not bounded: all who have waited may enter, and those are no more than calls that run.
        let record = record.take().map(QueuedRecord::from);
        self.shared.enqueue_item(WriteQueueItem { record, on_durable: None }, false)
    }

    /// Accepts the record of something that has already happened, and keeps it until it can be
    /// written. A failure to write it is reported by the next action and by the next flush.
    pub fn append_completed(&self, record: AuditRecord) {
        // Unbounded, because nothing new begins while records cannot be written.
        let _ = self
            .shared
            .enqueue_item(WriteQueueItem { record: Some(record.into()), on_durable: None }, false);
    }

    /// Accepts a record, and waits until it is on the disk. After a failure, makes the thread try
    /// again.
    ///
    /// # Errors
    ///
    /// The record cannot be written and is dropped, or too many are waiting.
    pub fn commit(
        &self,
        record: AuditRecord,
    ) -> impl Future<Output = Result<(), AuditError>> + Send + use<> {
        self.enqueue_and_wait(Some(record.into()))
    }

    /// Waits until every accepted record is on the disk. Concurrent callers share one wait for the
    /// disk. After a failure, makes the thread try again.
    ///
    /// # Errors
    ///
    /// The audit cannot be written.
    pub fn wait_until_durable(
        &self,
    ) -> impl Future<Output = Result<(), AuditError>> + Send + use<> {
        self.enqueue_and_wait(None)
    }

    fn enqueue_and_wait(
        &self,
        record: Option<QueuedRecord>,
    ) -> impl Future<Output = Result<(), AuditError>> + Send + use<> {
        let (notify, completion) = oneshot::channel();
        let notify: DurabilityCallback = Box::new(move |result| drop(notify.send(result)));
        let is_bounded = record.is_some();
        let item = WriteQueueItem { record, on_durable: Some(notify) };
        let enqueued = self.shared.enqueue_item(item, is_bounded);
        async move {
            enqueued?;
            completion.await.unwrap_or(Err(AuditError::Ended))
        }
    }

    /// Returns why the last attempt to write failed, or `None` if it succeeded.
    pub fn failure(&self) -> Option<AuditError> {
        self.shared.lock_state().failure.clone()
    }

    /// Waits until every accepted record is on the disk, or, before the first record, until the
    /// audit is known to be writable. After a failure, makes the thread try again.
    ///
    /// # Errors
    ///
    /// The audit cannot be written, or not within `timeout`.
    pub fn flush(&self, timeout: Duration) -> Result<(), AuditError> {
        self.enqueue_and_block(None, timeout)
    }

    /// Does what [`commit`](Self::commit) does, and blocks the thread meanwhile.
    ///
    /// # Errors
    ///
    /// The record cannot be written and is dropped, or too many are waiting, or it is not written
    /// within `timeout`. It may be in the log all the same: after a timeout the thread still writes
    /// it, and a failure may come after the record was added. A caller that then does not act has
    /// to add a record that says so.
    pub fn commit_within(&self, record: AuditRecord, timeout: Duration) -> Result<(), AuditError> {
        self.enqueue_and_block(Some(record.into()), timeout)
    }

    fn enqueue_and_block(
        &self,
        record: Option<QueuedRecord>,
        timeout: Duration,
    ) -> Result<(), AuditError> {
        let (notify, completion) = mpsc::sync_channel(1);
        let notify: DurabilityCallback = Box::new(move |result| drop(notify.send(result)));
        let is_bounded = record.is_some();
        self.shared
            .enqueue_item(WriteQueueItem { record, on_durable: Some(notify) }, is_bounded)?;
        completion.recv_timeout(timeout).unwrap_or_else(|error| match error {
            mpsc::RecvTimeoutError::Disconnected => Err(AuditError::Ended),
            mpsc::RecvTimeoutError::Timeout => {
                let records = self.shared.lock_state().unwritten;
                Err(AuditError::TimedOut { records, waited: timeout })
            }
        })
    }

    /// Returns the problems found so far in the log that this one continues. The list is complete
    /// after a [`flush`](Self::flush).
    pub fn warnings(&self) -> Vec<AuditProblem> {
        self.shared.lock_state().warnings.clone()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let flushed = self.flush(Duration::from_millis(DROP_WAIT_MS));
        // Not earlier: after a failure, a thread that sees this does not try once more.
        self.shared.lock_state().is_closing = true;
        self.shared.work.notify_one();
        // A writer that hangs is abandoned: the process has waited long enough for it.
        if !matches!(flushed, Err(AuditError::TimedOut { .. })) {
            self.writer.take().map(JoinHandle::join);
        }
    }
}

impl WriteQueueState {
    /// Whether no more records are taken.
    fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE_RECORDS_MAX
    }

    /// Whether there is something to write, and writing may succeed.
    pub(super) fn is_due(&self) -> bool {
        !self.queue.is_empty() && (self.failure.is_none() || self.is_retried)
    }

    /// Whether the thread should wait for more records.
    pub(super) fn can_wait_for_more(&self) -> bool {
        !self.is_urgent && !self.is_closing && self.queue.len() < GROUP_RECORDS
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes all queued items.
    pub(super) fn take_queue(&mut self) -> Vec<WriteQueueItem> {
        (self.is_idle, self.is_urgent, self.is_retried) = (false, false, false);
        std::mem::take(&mut self.queue).into()
    }
}

impl SharedWriteQueue {
    /// Each change leaves the state consistent, so a poisoned lock is safe to use.
    pub(super) fn lock_state(&self) -> MutexGuard<'_, WriteQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue_item(&self, item: WriteQueueItem, is_bounded: bool) -> Result<(), AuditError> {
        let mut state = self.lock_state();
        if state.has_ended {
            return Err(AuditError::Ended);
        }
        let is_awaited = item.on_durable.is_some();
        if is_bounded && state.is_full() {
            // After a failure, only a caller who waits makes the thread try again, and this one would.
            state.is_retried |= is_awaited;
            drop(state);
            self.work.notify_one();
            return Err(AuditError::QueueFull { records_max: QUEUE_RECORDS_MAX });
        }
        state.unwritten += u64::from(item.record.is_some());
        state.queue.push_back(item);
        state.is_urgent |= is_awaited;
        state.is_retried |= is_awaited;
        let is_full = state.queue.len() == GROUP_RECORDS;
        let wake = std::mem::take(&mut state.is_idle) || is_awaited || is_full;
        drop(state);
        if wake {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Adds to the problems found in the log.
    pub(super) fn add_warnings(&self, problems: Vec<AuditProblem>) {
        self.lock_state().warnings.extend(problems);
    }

    /// Marks records as written to the log.
    pub(super) fn mark_written(&self, records: u64) {
        self.lock_state().unwritten -= records;
    }

    /// Reports success to the callers that wait for a group.
    pub(super) fn report_success(&self, items: Vec<WriteQueueItem>) {
        self.lock_state().failure = None;
        notify_waiters(items, &Ok(()));
    }

    /// Reports a failure to the callers that wait, and drops their items: they do not act, so there
    /// is nothing to record. Records of past actions are kept for another attempt.
    pub(super) fn report_failure(&self, items: Vec<WriteQueueItem>, error: StoreError) {
        let failure = AuditError::Failed(Arc::new(error));
        let mut state = self.lock_state();
        let all = items.into_iter().chain(std::mem::take(&mut state.queue));
        let (with_waiters, kept): (Vec<_>, Vec<_>) =
            all.partition(|item| item.on_durable.is_some());
        state.queue = kept.into_iter().filter(|item| item.record.is_some()).collect();
        state.unwritten = state.queue.len() as u64;
        state.failure = Some(failure.clone());
        (state.is_urgent, state.is_retried) = (false, false);
        drop(state);
        notify_waiters(with_waiters, &Err(failure));
    }

    /// Refuses all further records, however the thread ended.
    pub(super) fn close_queue(&self) {
        let mut state = self.lock_state();
        state.has_ended = true;
        state.failure.get_or_insert(AuditError::Ended);
        let left = std::mem::take(&mut state.queue);
        drop(state);
        notify_waiters(left.into(), &Err(AuditError::Ended));
    }
}

fn notify_waiters(items: Vec<WriteQueueItem>, result: &Result<(), AuditError>) {
    for completion in items.into_iter().filter_map(|item| item.on_durable) {
        completion(result.clone());
    }
}

impl std::fmt::Debug for SharedWriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedWriteQueue").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{AuditKind, HostUser};

    /// Refuses the first record, and keeps the others.
    struct RefusingOnce {
        has_refused: bool,
        kept: Arc<Mutex<Vec<String>>>,
    }

    impl AuditWriter for RefusingOnce {
        fn append(&mut self, lines: &[&str], _: bool) -> Result<Vec<AuditProblem>, StoreError> {
            if !lines.is_empty() && !std::mem::replace(&mut self.has_refused, true) {
                return Err(StoreError::Full { path: "audit".into() });
            }
            self.kept.lock().unwrap().extend(lines.iter().map(|line| (*line).to_owned()));
            Ok(Vec::new())
        }

        fn sync(&mut self) -> Result<Vec<AuditProblem>, StoreError> {
            Ok(Vec::new())
        }
    }

    /// The thread could end between the two steps of the drop: it was told that the log closes, and
    /// not yet to try once more.
    #[test]
    fn a_record_that_was_kept_after_a_failure_was_lost_at_the_end_of_the_log() {
        let record = || AuditRecord::new(AuditKind::Policy, 1, HostUser::from_process("tester"));
        for _ in 0..200 {
            let kept = Arc::default();
            let log = AuditLog::start(Box::new(RefusingOnce {
                has_refused: false,
                kept: Arc::clone(&kept),
            }));
            log.commit_within(record(), Duration::from_secs(60)).unwrap_err();
            log.append_completed(record());
            drop(log);
            assert_eq!(kept.lock().unwrap().len(), 1);
        }
    }
}
