//! Session history: stores the records of a session as rows.
//!
//! The session crate defines the records, and the store keeps text. This module converts between
//! the two. A session's row is created with its first records, so a program that ends before any
//! input leaves nothing behind.

mod journal;
mod retention;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use sallyport_session::{JournalRecord, history::kept_numbers};
use sallyport_store::{HostStore, KeptResultLookup, StoreError, StoredSession, StoredUsage};

pub use journal::{SessionOrigin, StoreJournal, Supersession};
pub use retention::prune_sessions;

/// Returns the records of a session in order. A record that cannot be read is returned as
/// [`JournalRecord::Unknown`].
///
/// # Errors
///
/// The session does not exist any more, or the database cannot be read.
pub async fn read_records(
    store: &HostStore,
    session: &StoredSession,
) -> Result<Vec<JournalRecord>, StoreError> {
    let mut records = Vec::new();
    loop {
        let page = store.sessions.read_page(session, records.len() as u64).await?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page.iter().map(|row| JournalRecord::from_json(&row.body)));
    }
}

/// Returns the kept results of a session's calls by their numbers, as far as they are still kept.
///
/// # Errors
///
/// The session does not exist any more, or the database cannot be read.
pub async fn read_kept_results(
    store: &HostStore,
    session: &StoredSession,
    records: &[JournalRecord],
) -> Result<BTreeMap<u64, String>, StoreError> {
    let mut texts = BTreeMap::new();
    for number in kept_numbers(records) {
        let found = store.kept_results.find(&session.user, &session.id, number).await?;
        if let KeptResultLookup::Found(text) = found {
            texts.insert(number, text);
        }
    }
    Ok(texts)
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
