//! Checking that the log still contains exactly what was written.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{chain, row};
use crate::{
    audit::{
        AuditVerification,
        chain::{
            key::AuditKey,
            link::ChainLink,
            walk::{self, ChainWalk},
        },
    },
    sqlite::transaction_error::TransactionError,
};

/// Checks the whole log. Other processes may write meanwhile: only the comparison of the head with
/// the log takes their lock, for a moment.
///
/// # Errors
///
/// The database, the key or the head cannot be read.
pub(super) fn verify_log(
    connection: &Connection,
    folder: &Path,
    expected: Option<ChainLink>,
) -> Result<AuditVerification, TransactionError> {
    let (key, head_problem) = chain::load_key_and_check_head(connection, folder)?;
    // A single transaction, because every query must see the same state of the log.
    let checked =
        Transaction::new_unchecked(connection, TransactionBehavior::Deferred).and_then(|moment| {
            match key {
                Some(key) => verify_with_key(&moment, &key, expected),
                None => verify_without_key(&moment, expected),
            }
        });
    let mut verification = checked?;
    verification.problems.extend(head_problem);
    verification.problems.sort_by_key(|problem| problem.seq);
    Ok(verification)
}

fn verify_with_key(
    connection: &Connection,
    key: &AuditKey,
    expected: Option<ChainLink>,
) -> rusqlite::Result<AuditVerification> {
    let first = row::read_first_seq(connection)?.unwrap_or(1);
    let mut walk = ChainWalk::new(row::find_start(connection, first)?, key, expected);
    if let Err(error) = row::walk_through(&mut walk, connection, u64::MAX) {
        let next = walk.end.seq.saturating_add(1);
        walk.problems.push_new(next, format!("cannot be read, nor any behind it: {error}"));
    }
    walk.check_expected_link();
    Ok(walk.into_verification())
}

/// Without a key, neither the records nor an expected head can be checked.
fn verify_without_key(
    connection: &Connection,
    expected: Option<ChainLink>,
) -> rusqlite::Result<AuditVerification> {
    let records =
        connection.query_row("SELECT count(*) FROM audit", (), |row| row.get::<_, i64>(0))?;
    let end = row::read_last_link(connection)?;
    Ok(walk::unchecked_verification(records.unsigned_abs(), end, expected))
}
