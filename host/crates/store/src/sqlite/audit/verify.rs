//! Checking that the log still contains exactly what was written.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    chain,
    key::{self, AuditKey},
    link::ChainLink,
    remark::ChainStart,
    row,
    walk::ChainWalk,
};
use crate::{
    audit::{AuditVerification, problem::AuditProblemList},
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
    let mut walk = ChainWalk::new(ChainStart::find_start(connection, first)?, key, expected);
    if let Err(error) = walk.walk_through(connection, u64::MAX) {
        let next = walk.end.seq.saturating_add(1);
        walk.problems.push_new(next, format!("cannot be read, nor any behind it: {error}"));
    }
    walk.check_expected_link();
    Ok(AuditVerification {
        records: walk.records,
        pruned: walk.pruned,
        head: walk.end.to_string(),
        problems: walk.problems.into_list(),
    })
}

/// Without a key, neither the records nor an expected head can be checked.
fn verify_without_key(
    connection: &Connection,
    expected: Option<ChainLink>,
) -> rusqlite::Result<AuditVerification> {
    let records =
        connection.query_row("SELECT count(*) FROM audit", (), |row| row.get::<_, i64>(0))?;
    let end = row::read_last_link(connection)?;
    let mut problems = AuditProblemList::default();
    if records > 0 {
        problems.push_new(
            end.seq,
            format!("cannot be checked, nor any before it: {} is missing", key::FILE),
        );
    }
    if let Some(expected) = expected.filter(|expected| *expected != ChainLink::GENESIS) {
        let what = if records > 0 { "cannot be compared" } else { "the log ends before it" };
        problems.push_new(expected.seq, format!("expected, but {what}"));
    }
    Ok(AuditVerification {
        records: records.unsigned_abs(),
        pruned: 0,
        head: end.to_string(),
        problems: problems.into_list(),
    })
}
