//! The pen of the audit: takes records from whoever acts and writes them on a thread of its own.
//!
//! Whoever appends only puts a record into a queue. The thread lets a few gather, so that many calls
//! in a row cost one commit and not one each; a flush, or the end, hurries it. Once the thread cannot write, it never tries again, and every
//! further record is refused at once: what cannot be recorded must not be done.

use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{chain, problem::Problem, record::AuditRecord};
use crate::{database, error::StoreError};

/// Most records that wait. Thousands of calls can end while the disk is busy for a second; whoever
/// is further ahead has to stop.
const QUEUE_RECORDS_MAX: usize = 4096;

/// How long records gather before they are written. A process that is killed loses them, so it is
/// no longer than it takes to make the cost of commits small beside that of the calls.
const GATHER_MS: u64 = 2;

/// Records that are written without waiting for more.
const GROUP_RECORDS: usize = QUEUE_RECORDS_MAX / 4;

/// How long a dropped log waits for its last records. Longer than the wait for another process, so
/// that only a disk that hangs loses any.
const DROP_WAIT_MS: u64 = 10_000;

/// Why a record is not, or may not be, in the audit.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The log cannot be written, and will not be by this process.
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

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The writer waits here for something to do.
    work: Condvar,
    /// Whoever flushes waits here for the writer.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Vec<AuditRecord>,
    taken: u64,
    written: u64,
    /// The writer has opened the database.
    ready: bool,
    /// The writer waits, and has to be woken.
    idle: bool,
    /// Somebody waits for what is in the queue.
    hurry: bool,
    closing: bool,
    failure: Option<AuditError>,
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
            .spawn(move || Writer { shared: of_writer }.run(&folder));
        if writer.is_err() {
            shared.fail(AuditError::Ended);
        }
        Self { shared, writer: writer.ok() }
    }

    /// Takes a record, which is written within some milliseconds. Does not wait for that, nor for anything else.
    ///
    /// # Errors
    ///
    /// An earlier record could not be written, or too many wait. This one is not taken then.
    pub fn append(&self, record: AuditRecord) -> Result<(), AuditError> {
        let mut state = self.shared.state();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if state.queue.len() >= QUEUE_RECORDS_MAX {
            return Err(AuditError::Behind { records_max: QUEUE_RECORDS_MAX });
        }
        state.queue.push(record);
        state.taken += 1;
        let wake = std::mem::take(&mut state.idle) || state.queue.len() == GROUP_RECORDS;
        drop(state);
        if wake {
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Waits until every record that was taken is written; before the first one, until the audit is
    /// known to be writable.
    ///
    /// # Errors
    ///
    /// The audit cannot be written, or not in this time.
    pub fn flush(&self, timeout: Duration) -> Result<(), AuditError> {
        let mut state = self.shared.state();
        let taken = state.taken;
        state.hurry = !state.has(taken);
        self.shared.work.notify_one();
        let waited = self.shared.done.wait_timeout_while(state, timeout, |state| {
            state.failure.is_none() && !state.has(taken)
        });
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None if state.has(taken) => Ok(()),
            None => Err(AuditError::TimedOut { records: taken - state.written, waited: timeout }),
        }
    }

    /// What was wrong with the log that this one continues, as far as it is known by now: all of
    /// it after a [`flush`](Self::flush).
    pub fn warnings(&self) -> Vec<Problem> {
        self.shared.state().warnings.clone()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.shared.work.notify_one();
        let flushed = self.flush(Duration::from_millis(DROP_WAIT_MS));
        // A writer that hangs is left behind: the process has waited long enough for it.
        if !matches!(flushed, Err(AuditError::TimedOut { .. })) {
            self.writer.take().map(JoinHandle::join);
        }
    }
}

/// The thread's own end of the queue. Whatever ends the thread, appending fails from then on.
struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    fn run(&self, folder: &Path) {
        if let Err(error) = self.write(folder) {
            self.shared.fail(AuditError::Failed(Arc::new(error)));
        }
    }

    fn write(&self, folder: &Path) -> Result<(), StoreError> {
        let connection = database::open(folder)?;
        let problems = chain::extend(&connection, folder, |_| Ok(()))?;
        self.shared.wrote(0, problems);
        while let Some(records) = self.shared.next_group() {
            let lines: Vec<String> = records.into_iter().map(AuditRecord::into_line).collect();
            let problems = chain::extend(&connection, folder, |extension| {
                lines.iter().try_for_each(|line| extension.push(line))
            })?;
            self.shared.wrote(lines.len() as u64, problems);
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.fail(AuditError::Ended);
    }
}

impl State {
    /// Whether this many records are written, and the database has been opened at all.
    fn has(&self, records: u64) -> bool {
        self.ready && self.written >= records
    }

    /// Whether the writer should let further records gather.
    fn may_wait(&self) -> bool {
        !self.hurry && !self.closing && self.queue.len() < GROUP_RECORDS
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for records; `None` when the log is dropped and all of them are written.
    fn next_group(&self) -> Option<Vec<AuditRecord>> {
        let mut state = self.state();
        while state.queue.is_empty() && !state.closing {
            state.idle = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        let gathering = Duration::from_millis(GATHER_MS);
        let gathered = self.work.wait_timeout_while(state, gathering, |state| state.may_wait());
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        state.hurry = false;
        Some(std::mem::take(&mut state.queue)).filter(|records| !records.is_empty())
    }

    fn wrote(&self, records: u64, problems: Vec<Problem>) {
        let mut state = self.state();
        state.ready = true;
        state.written += records;
        state.warnings.extend(problems);
        drop(state);
        self.done.notify_all();
    }

    /// The first failure is the one that is told.
    fn fail(&self, failure: AuditError) {
        let mut state = self.state();
        state.failure.get_or_insert(failure);
        state.queue.clear();
        drop(state);
        self.done.notify_all();
    }
}
