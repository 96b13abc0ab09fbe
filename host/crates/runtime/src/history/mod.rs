//! Sessions as they are kept: what the session calls records, in the store's rows.
//!
//! The session knows what a record means and the store knows how to keep texts; here is the one
//! place where the two meet. A session's row is made with its first records, so a program that ends
//! before anything was said leaves nothing behind.

mod journal;
mod retention;
#[cfg(test)]
mod tests;

use sallyport_session::Record;
use sallyport_store::{Store, StoreError, Used};

pub use journal::{Origin, StoreJournal};
pub use retention::clear_up;

/// Returns the records of a session in their order. What cannot be read is among them as
/// [`Record::Unknown`].
///
/// # Errors
///
/// There is no such session, or the database cannot be read.
pub fn records(store: &Store, id: &str) -> Result<Vec<Record>, StoreError> {
    let rows = store.sessions().read(id)?;
    rows.map(|row| Ok(Record::read(&row?.body))).collect()
}

/// What a record adds to the figures of its session.
fn used(record: &Record) -> Used {
    let turns = u64::from(matches!(record, Record::Input { .. }));
    let Some((usage, cost)) = record.spent() else { return Used { turns, ..Used::default() } };
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    Used { turns, tokens, cost_micro_usd: cost.map(|cost| cost.micro_usd) }
}
