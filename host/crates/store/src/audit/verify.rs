//! Checking that the log still contains exactly what was written.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;

use super::{
    chain,
    key::{self, AuditKey},
    link::Link,
    problem::{Problem, Problems},
    remark::Start,
    row,
    walk::Walk,
};
use crate::{database, error::StoreError};

/// The result of checking the whole log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// How many records the log contains.
    pub records: u64,
    /// How many records were removed from the start of the log by pruning.
    pub pruned: u64,
    /// The last record, written `NUMBER:HASH`. Kept elsewhere and passed to a later check, it
    /// detects any change up to this record, even one made with the key.
    pub head: String,
    /// The problems, in the order of the log. Empty if the log is intact.
    pub problems: Vec<Problem>,
}

impl Verification {
    /// Whether the log is intact.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Checks the whole log. Other processes may write meanwhile: only the comparison of the head with
/// the log takes their lock, for a moment.
///
/// # Errors
///
/// The database, the key or the head cannot be read, or the expected head is not one.
pub(super) fn verify(
    connection: &Connection,
    folder: &Path,
    expected_head: Option<&str>,
) -> Result<Verification, StoreError> {
    let expected = expected_head.map(Link::expected).transpose()?;
    let (key, misfit) = chain::look(connection, folder)?;
    // A single transaction, because every query must see the same state of the log.
    let checked =
        Transaction::new_unchecked(connection, TransactionBehavior::Deferred).and_then(|moment| {
            match key {
                Some(key) => with_key(&moment, &key, expected),
                None => without_key(&moment, expected),
            }
        });
    let mut verification = checked.map_err(database::failed(folder))?;
    verification.problems.extend(misfit);
    verification.problems.sort_by_key(|problem| problem.seq);
    Ok(verification)
}

fn with_key(
    connection: &Connection,
    key: &AuditKey,
    expected: Option<Link>,
) -> rusqlite::Result<Verification> {
    let first = row::first_seq(connection)?.unwrap_or(1);
    let mut walk = Walk::new(Start::find(connection, first)?, key, expected);
    if let Err(error) = walk.go(connection, u64::MAX) {
        let next = walk.end.seq.saturating_add(1);
        walk.problems.add(next, format!("cannot be read, nor any behind it: {error}"));
    }
    walk.judge_expected();
    Ok(Verification {
        records: walk.records,
        pruned: walk.pruned,
        head: walk.end.to_string(),
        problems: walk.problems.into_list(),
    })
}

/// Without a key, neither the records nor an expected head can be checked.
fn without_key(connection: &Connection, expected: Option<Link>) -> rusqlite::Result<Verification> {
    let records =
        connection.query_row("SELECT count(*) FROM audit", (), |row| row.get::<_, i64>(0))?;
    let end = row::end(connection)?;
    let mut problems = Problems::default();
    if records > 0 {
        problems.add(
            end.seq,
            format!("cannot be checked, nor any before it: {} is missing", key::FILE),
        );
    }
    if let Some(expected) = expected.filter(|expected| *expected != Link::GENESIS) {
        let what = if records > 0 { "cannot be compared" } else { "the log ends before it" };
        problems.add(expected.seq, format!("expected, but {what}"));
    }
    Ok(Verification {
        records: records.unsigned_abs(),
        pruned: 0,
        head: end.to_string(),
        problems: problems.into_list(),
    })
}
