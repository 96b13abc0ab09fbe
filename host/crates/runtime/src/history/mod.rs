//! Session history: stores the records of a session as rows.
//!
//! The session crate defines the records, and the store keeps text. This module converts between
//! the two. A session's row is created with its first records, so a program that ends before any
//! input leaves nothing behind.

mod journal;
mod retention;
#[cfg(test)]
mod tests;

use sallyport_session::JournalRecord;
use sallyport_store::{HostStore, StoreError, StoredUsage};

pub use journal::{SessionOrigin, StoreJournal};
pub use retention::prune_sessions;

/// Returns the records of a session in order. A record that cannot be read is returned as
/// [`JournalRecord::Unknown`].
///
/// # Errors
///
/// The session does not exist, or the database cannot be read.
pub fn read_records(store: &HostStore, id: &str) -> Result<Vec<JournalRecord>, StoreError> {
    let rows = store.sessions().read_records(id)?;
    rows.map(|row| Ok(JournalRecord::from_json(&row?.body))).collect()
}

/// The usage that a record adds to its session: turns, tokens and cost.
fn record_usage(record: &JournalRecord) -> StoredUsage {
    let turns = u64::from(matches!(record, JournalRecord::Input { .. }));
    let Some((usage, cost)) = record.exchange_usage() else {
        return StoredUsage { turns, ..StoredUsage::default() };
    };
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    StoredUsage { turns, tokens, cost_micro_usd: cost.map(|cost| cost.micro_usd) }
}
