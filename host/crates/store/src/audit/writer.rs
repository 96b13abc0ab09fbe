//! The thread that writes the audit, group by group.
//!
//! A group that no caller waits for is committed without a wait for the disk, so calls that change
//! nothing cost no wait. Its records reach the disk with the next group that a caller waits for, or
//! about a second later.

use std::{
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use super::{
    AuditWriter,
    log::{SharedWriteQueue, WriteQueueItem},
    record::QueuedRecord,
};
use crate::error::StoreError;

/// How long records are gathered before they are written, unless a caller waits. A killed process
/// loses them, so this is only long enough to make commits cheap compared to calls.
const GATHER_MS: u64 = 2;

/// How long records that no caller waits for may be in the log before they are on the disk and the
/// head names them.
const SYNC_DELAY_MS: u64 = 1000;

/// The thread's end of the queue.
pub(super) struct AuditWriterThread {
    pub(super) shared: Arc<SharedWriteQueue>,
    pub(super) writer: Box<dyn AuditWriter>,
    /// Since when the log contains records that may not be on the disk.
    pub(super) unsynced_since: Option<Instant>,
}

/// Items that are written together.
struct WriteBatch {
    items: Vec<WriteQueueItem>,
    is_durable: bool,
}

impl AuditWriterThread {
    /// Writes until the log is dropped.
    pub(super) fn run(mut self) {
        // An empty group comes first, so that the database is open before the first record.
        let mut next = Some(WriteBatch { items: Vec::new(), is_durable: false });
        while let Some(mut group) = next {
            match self.write_batch(&mut group) {
                Ok(()) => self.shared.report_success(group.items),
                Err(error) => self.shared.report_failure(group.items, error),
            }
            next = self.next_batch();
        }
    }

    fn write_batch(&mut self, group: &mut WriteBatch) -> Result<(), StoreError> {
        let records = group.items.iter().filter_map(|item| item.record.as_ref());
        let lines: Vec<&str> = records.map(QueuedRecord::line).collect();
        if !lines.is_empty() || !group.is_durable {
            self.shared.add_warnings(self.writer.append(&lines, group.is_durable)?);
            self.shared.mark_written(lines.len() as u64);
        }
        if !lines.is_empty() {
            self.unsynced_since.get_or_insert_with(Instant::now);
            // If a later step fails, these records must not be written twice.
            group.items.iter_mut().for_each(|item| item.record = None);
        }
        if group.is_durable {
            self.shared.add_warnings(self.writer.sync()?);
            self.unsynced_since = None;
        }
        Ok(())
    }

    /// Waits for records, or until written ones must be flushed to the disk. Returns `None` once
    /// the log is dropped and nothing is left that can be written.
    fn next_batch(&self) -> Option<WriteBatch> {
        let mut state = self.shared.lock_state();
        while !state.is_due() {
            if state.is_closing {
                return None;
            }
            state.is_idle = true;
            let left = self.unsynced_since.filter(|_| !state.has_failed()).map(time_until_sync);
            state = match left {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let waited = self.shared.work.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.shared.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.is_idle = false;
        if !state.queue.is_empty() {
            let gathering = Duration::from_millis(GATHER_MS);
            let gathered = self
                .shared
                .work
                .wait_timeout_while(state, gathering, |state| state.can_wait_for_more());
            state = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        let items = state.take_queue();
        let is_awaited = items.iter().any(|item| item.on_durable.is_some());
        let is_late = self.unsynced_since.map(time_until_sync) == Some(Duration::ZERO);
        Some(WriteBatch { items, is_durable: is_awaited || is_late })
    }
}

fn time_until_sync(since: Instant) -> Duration {
    Duration::from_millis(SYNC_DELAY_MS).saturating_sub(since.elapsed())
}

impl Drop for AuditWriterThread {
    fn drop(&mut self) {
        self.shared.close_queue();
    }
}
