//! The thread that writes the audit, group by group.
//!
//! A group that no caller waits for is committed without a wait for the disk, so calls that change
//! nothing cost no wait. Its records reach the disk with the next group that a caller waits for, or
//! about a second later.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    chain,
    log::{SharedWriteQueue, WriteQueueItem},
};
use crate::{
    database::{self, Durability},
    error::StoreError,
};

/// How long records are gathered before they are written, unless a caller waits. A killed process
/// loses them, so this is only long enough to make commits cheap compared to calls.
const GATHER_MS: u64 = 2;

/// How long records that no caller waits for may be in the log before they are on the disk and the
/// head names them.
const SYNC_DELAY_MS: u64 = 1000;

/// The thread's end of the queue.
pub(super) struct AuditWriter {
    shared: Arc<SharedWriteQueue>,
    folder: PathBuf,
    /// Reopened after a failure: the folder may have been mounted again.
    connection: Option<Connection>,
    /// Since when the log contains records that the head does not name.
    unsynced_since: Option<Instant>,
}

/// Items that are written together.
struct WriteBatch {
    items: Vec<WriteQueueItem>,
    durability: Durability,
}

impl AuditWriter {
    pub(super) fn new(shared: Arc<SharedWriteQueue>, folder: PathBuf) -> Self {
        Self { shared, folder, connection: None, unsynced_since: None }
    }

    /// Writes until the log is dropped.
    pub(super) fn run(mut self) {
        // An empty group comes first, so that the database is open before the first record.
        let mut next = Some(WriteBatch { items: Vec::new(), durability: Durability::Deferred });
        while let Some(mut group) = next {
            match self.write_batch(&mut group) {
                Ok(()) => self.shared.report_success(group.items),
                Err(error) => {
                    self.connection = None;
                    self.shared.report_failure(group.items, error);
                }
            }
            next = self.next_batch();
        }
    }

    fn write_batch(&mut self, group: &mut WriteBatch) -> Result<(), StoreError> {
        let folder = &self.folder;
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => database::open_database(folder)?,
        };
        let connection = self.connection.insert(connection);
        let lines: Vec<&String> =
            group.items.iter().filter_map(|item| item.line.as_ref()).collect();
        if lines.is_empty() && group.durability == Durability::Durable {
            self.shared.add_warnings(chain::sync_and_advance_head(connection, folder)?);
            self.unsynced_since = None;
            return Ok(());
        }
        let append_result =
            chain::append_records(connection, folder, group.durability, |appender| {
                lines.iter().try_for_each(|line| appender.push_record(line))
            })?;
        self.shared.add_warnings(append_result.problems);
        self.shared.mark_written(lines.len() as u64);
        let has_lines = !lines.is_empty();
        // If a later step fails, these lines must not be written twice.
        group.items.iter_mut().for_each(|item| item.line = None);
        match group.durability {
            Durability::Durable => {
                chain::advance_head(connection, folder, append_result.end)?;
                self.unsynced_since = None;
            }
            Durability::Deferred if has_lines => {
                self.unsynced_since.get_or_insert_with(Instant::now);
            }
            Durability::Deferred => {}
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
        let is_durable = is_awaited || is_late;
        let durability = if is_durable { Durability::Durable } else { Durability::Deferred };
        Some(WriteBatch { items, durability })
    }
}

fn time_until_sync(since: Instant) -> Duration {
    Duration::from_millis(SYNC_DELAY_MS).saturating_sub(since.elapsed())
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.shared.close_queue();
    }
}
