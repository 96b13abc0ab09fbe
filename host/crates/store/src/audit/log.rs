//! The pen of the audit: takes records from whoever acts, and has them written on a thread of its own.
//!
//! Whoever acts hands a record over ([`AuditLog::append`]). What is about to change or leak anything
//! waits then until it is on the disk ([`AuditLog::settled`]); what can do neither does not.
//! While the thread cannot write, nothing new is taken: what cannot be recorded must not be done. The
//! records of what was done already are kept, and whoever wants to go on has the thread try again.

use std::{
    collections::VecDeque,
    future::Future,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::oneshot;

use super::{problem::Problem, record::AuditRecord, writer::Writer};
use crate::error::StoreError;

/// Most records that wait. Thousands of calls can end while the disk is busy for a second; whoever
/// is further ahead has to stop.
const QUEUE_RECORDS_MAX: usize = 4096;

/// Records that are written without waiting for more.
pub(super) const GROUP_RECORDS: usize = QUEUE_RECORDS_MAX / 4;

/// How long a dropped log waits for its last records. Longer than the wait for another process, so
/// that only a disk that hangs loses any.
const DROP_WAIT_MS: u64 = 10_000;

/// Why a record is not, or may not be, in the audit.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The log cannot be written for now.
    #[error("the audit cannot be written: {0}")]
    Failed(Arc<StoreError>),
    /// Too many records wait to be written.
    #[error("{records_max} records of the audit wait to be written, no more are taken")]
    Behind {
        /// How many may wait.
        records_max: usize,
    },
    /// Records were not written in time.
    #[error("{records} records of the audit are not written after {waited:?}")]
    TimedOut {
        /// How many are left.
        records: u64,
        /// How long was waited.
        waited: Duration,
    },
    /// The thread that writes is gone.
    #[error("the audit is no longer written")]
    Ended,
}

/// The audit as its writers see it. Dropping it writes what is left; a process that ends without
/// dropping it has to [`flush`](Self::flush) first.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// Is told, once, what came of an item.
type Told = Box<dyn FnOnce(Result<(), AuditError>) + Send>;

/// Something for the thread to write.
#[derive(Default)]
pub(super) struct Item {
    /// The record as it is stored; none where somebody only waits for those before.
    pub(super) line: Option<String>,
    /// Who waits until it is on the disk.
    pub(super) told: Option<Told>,
}

/// What log and thread share.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// The thread waits here for something to do.
    pub(super) work: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queue: VecDeque<Item>,
    /// Records that were taken and are not written yet.
    unwritten: u64,
    /// The thread waits, and has to be woken.
    pub(super) is_idle: bool,
    /// Somebody waits for what is in the queue.
    pub(super) is_urgent: bool,
    /// The last attempt failed, and why.
    failure: Option<AuditError>,
    /// Somebody has asked since for another attempt.
    is_retried: bool,
    /// The thread is gone.
    has_ended: bool,
    pub(super) is_closing: bool,
    warnings: Vec<Problem>,
}

impl AuditError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Failed(error) => error.hint(),
            Self::Behind { .. } | Self::TimedOut { .. } => {
                Some("check whether the disk is busy, or another process holds the audit".into())
            }
            Self::Ended => Some("start again".into()),
        }
    }
}

impl AuditLog {
    /// Starts the thread, which opens the database at once.
    pub(crate) fn start(folder: &Path) -> Self {
        let shared = Arc::new(Shared::default());
        let (of_writer, folder) = (Arc::clone(&shared), folder.to_owned());
        let writer = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || Writer::new(of_writer, folder).run());
        if writer.is_err() {
            shared.end();
        }
        Self { shared, writer: writer.ok() }
    }

    /// Takes a record, which is written within some milliseconds. Does not wait for that, nor for
    /// anything else.
    ///
    /// # Errors
    ///
    /// An earlier record could not be written, or too many wait. This one is not taken then.
    pub fn append(&self, record: AuditRecord) -> Result<(), AuditError> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.shared.take(Item { line: Some(record.into_line()), told: None }, true)
    }

    /// Takes the record of something that was done already, and keeps it until it can be written.
    /// That it cannot be for now is noticed by whoever wants to do something next, and by a flush.
    pub fn append_done(&self, record: AuditRecord) {
        // Without bound, since nothing new begins while records cannot be written.
        let _ = self.shared.take(Item { line: Some(record.into_line()), told: None }, false);
    }

    /// Takes a record, and waits until it is on the disk. After a failure it has the thread try again.
    ///
    /// # Errors
    ///
    /// It cannot be written, and is given up; or too many wait.
    pub fn commit(
        &self,
        record: AuditRecord,
    ) -> impl Future<Output = Result<(), AuditError>> + Send + use<> {
        self.awaited(Some(record.into_line()))
    }

    /// Waits until every record that was taken is on the disk. All that wait at one moment share one
    /// wait for the disk. After a failure it has the thread try again.
    ///
    /// # Errors
    ///
    /// The audit cannot be written.
    pub fn settled(&self) -> impl Future<Output = Result<(), AuditError>> + Send + use<> {
        self.awaited(None)
    }

    fn awaited(
        &self,
        line: Option<String>,
    ) -> impl Future<Output = Result<(), AuditError>> + Send + use<> {
        let (tell, told) = oneshot::channel();
        let tell: Told = Box::new(move |result| drop(tell.send(result)));
        let taken = self.shared.take(Item { line, told: Some(tell) }, true);
        async move {
            taken?;
            told.await.unwrap_or(Err(AuditError::Ended))
        }
    }

    /// Why the last attempt to write failed; nothing when it did not.
    pub fn failure(&self) -> Option<AuditError> {
        self.shared.state().failure.clone()
    }

    /// Waits until every record that was taken is on the disk; before the first one, until the audit
    /// is known to be writable. After a failure it has the thread try again.
    ///
    /// # Errors
    ///
    /// The audit cannot be written, or not in this time.
    pub fn flush(&self, timeout: Duration) -> Result<(), AuditError> {
        let (tell, told) = mpsc::sync_channel(1);
        let tell: Told = Box::new(move |result| drop(tell.send(result)));
        self.shared.take(Item { line: None, told: Some(tell) }, false)?;
        told.recv_timeout(timeout).unwrap_or_else(|error| match error {
            mpsc::RecvTimeoutError::Disconnected => Err(AuditError::Ended),
            mpsc::RecvTimeoutError::Timeout => {
                let records = self.shared.state().unwritten;
                Err(AuditError::TimedOut { records, waited: timeout })
            }
        })
    }

    /// What was wrong with the log that this one continues, as far as it is known by now: all of
    /// it after a [`flush`](Self::flush).
    pub fn warnings(&self) -> Vec<Problem> {
        self.shared.state().warnings.clone()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        let flushed = self.flush(Duration::from_millis(DROP_WAIT_MS));
        // A writer that hangs is left behind: the process has waited long enough for it.
        if !matches!(flushed, Err(AuditError::TimedOut { .. })) {
            self.writer.take().map(JoinHandle::join);
        }
    }
}

impl State {
    /// Whether there is something to write, and a reason to think that it can be written.
    pub(super) fn is_due(&self) -> bool {
        !self.queue.is_empty() && (self.failure.is_none() || self.is_retried)
    }

    /// Whether the thread should let further records gather.
    pub(super) fn may_gather(&self) -> bool {
        !self.is_urgent && !self.is_closing && self.queue.len() < GROUP_RECORDS
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes everything that waits.
    pub(super) fn take_all(&mut self) -> Vec<Item> {
        (self.is_idle, self.is_urgent, self.is_retried) = (false, false, false);
        std::mem::take(&mut self.queue).into()
    }
}

impl Shared {
    /// Each change is whole by itself, so a panic elsewhere leaves the state sound.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, item: Item, is_bounded: bool) -> Result<(), AuditError> {
        let mut state = self.state();
        if state.has_ended {
            return Err(AuditError::Ended);
        }
        if is_bounded && state.queue.len() >= QUEUE_RECORDS_MAX {
            return Err(AuditError::Behind { records_max: QUEUE_RECORDS_MAX });
        }
        let is_awaited = item.told.is_some();
        state.unwritten += u64::from(item.line.is_some());
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

    /// Tells what was wrong with the log.
    pub(super) fn warn(&self, problems: Vec<Problem>) {
        self.state().warnings.extend(problems);
    }

    /// Records are in the log, whoever is to be told of it.
    pub(super) fn wrote(&self, records: u64) {
        self.state().unwritten -= records;
    }

    /// Everything of a group is as it should be.
    pub(super) fn succeeded(&self, items: Vec<Item>) {
        self.state().failure = None;
        tell_all(items, &Ok(()));
    }

    /// Something of a group is not. What was done already is kept for another attempt. Whoever waits
    /// is told, and does nothing: there is nothing of it to write down.
    pub(super) fn failed(&self, items: Vec<Item>, error: StoreError) {
        let failure = AuditError::Failed(Arc::new(error));
        let mut state = self.state();
        let all = items.into_iter().chain(std::mem::take(&mut state.queue));
        let (awaited, kept): (Vec<_>, Vec<_>) = all.partition(|item| item.told.is_some());
        state.queue = kept.into_iter().filter(|item| item.line.is_some()).collect();
        state.unwritten = state.queue.len() as u64;
        state.failure = Some(failure.clone());
        (state.is_urgent, state.is_retried) = (false, false);
        drop(state);
        tell_all(awaited, &Err(failure));
    }

    /// Whatever ends the thread, nothing is taken from then on.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.failure.get_or_insert(AuditError::Ended);
        let left = std::mem::take(&mut state.queue);
        drop(state);
        tell_all(left.into(), &Err(AuditError::Ended));
    }
}

fn tell_all(items: Vec<Item>, result: &Result<(), AuditError>) {
    for told in items.into_iter().filter_map(|item| item.told) {
        told(result.clone());
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
