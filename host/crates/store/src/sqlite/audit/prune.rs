//! Removing old records so that the rest can still be checked.
//!
//! Only the start of the log is removed. The same commit adds a record that contains the number of
//! removed records, the link that the first remaining one follows, and the problems found among
//! them, because pruning must not remove the evidence of a manipulation.

use std::path::Path;

use rusqlite::Connection;

use super::{
    chain::{self, ChainAppender},
    row::{self, COLUMNS},
};
use crate::{
    audit::chain::{
        remark::{self, AuditRemark},
        walk::ChainWalk,
    },
    sqlite::{
        database::{self, Durability},
        transaction_error::TransactionError,
    },
};

/// Most records that are removed in one commit. They are checked under the write lock, which blocks
/// every writer for some tens of milliseconds.
const STEP_RECORDS_MAX: u32 = 5000;

/// The records to remove.
#[derive(Clone, Copy)]
struct PruneRange {
    before_ms: u64,
    /// The number of the last record that may be removed.
    end: u64,
}

/// Removes the records before a time, and returns their number.
///
/// # Errors
///
/// The database, the key or the head cannot be read or written.
pub(super) fn prune_records(
    connection: &Connection,
    folder: &Path,
    before_ms: u64,
) -> Result<u64, TransactionError> {
    // The records of removals that this run adds stay, however late `before_ms` is.
    let end = row::read_last_link(connection)?.seq;
    let mut removed = 0;
    loop {
        let records = prune_step(connection, folder, PruneRange { before_ms, end })?;
        if records == 0 {
            return Ok(removed);
        }
        removed += records;
    }
}

fn prune_step(
    connection: &Connection,
    folder: &Path,
    old: PruneRange,
) -> Result<u64, TransactionError> {
    let mut removed = 0;
    let append_result =
        chain::append_records(connection, folder, Durability::Durable, |appender| {
            let last = old.last_removable_seq(appender.connection())?;
            let Some(last) = last else { return Ok(()) };
            let (records, remark) = remove_records(appender, last)?;
            removed = records;
            appender.push_record(&remark.render_line())
        })?;
    if removed > 0 {
        chain::advance_head(connection, folder, append_result.end)?;
    }
    database::set_durability(connection, Durability::Deferred)?;
    Ok(removed)
}

impl PruneRange {
    /// Returns the number of the last record in the unbroken run of old records at the start of the
    /// log, looking at the next few only. An unreadable record is removed together with the one
    /// after it.
    fn last_removable_seq(self, connection: &Connection) -> rusqlite::Result<Option<u64>> {
        let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq <= ?1 ORDER BY seq LIMIT ?2");
        let mut statement = connection.prepare(&sql)?;
        let end = i64::try_from(self.end).unwrap_or(i64::MAX);
        let rows = statement.query_map((end, STEP_RECORDS_MAX), row::read_row)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(remark::last_removable_seq(&rows, self.before_ms))
    }
}

/// Removes the records up to a number. Returns their number and the remark about them.
fn remove_records(
    appender: &ChainAppender<'_>,
    through: u64,
) -> rusqlite::Result<(u64, AuditRemark)> {
    let connection = appender.connection();
    let first = row::read_first_seq(connection)?.unwrap_or(1);
    let mut walk = ChainWalk::new(row::find_start(connection, first)?, appender.key(), None);
    row::walk_through(&mut walk, connection, through)?;
    let number = i64::try_from(through).unwrap_or(i64::MAX);
    connection.execute("DELETE FROM audit WHERE seq <= ?1", [number])?;
    let (records, pruned) = (walk.records, walk.pruned);
    let problems = walk.problems.into_list();
    Ok((records, AuditRemark::Pruned { records: pruned + records, through: walk.end, problems }))
}
