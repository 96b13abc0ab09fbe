//! Removing old records so that the rest can still be checked, as in SQLite: the same commit adds a
//! record of what was removed.

use super::{
    chain::{self, LockedLog},
    rows,
};
use crate::{
    audit::chain::{
        link::ChainLink,
        remark::{self, AuditRemark},
        walk::ChainWalk,
    },
    error::StoreError,
    postgres::{
        PostgresStore,
        database::Access,
        error::PgError,
        transaction::{self, Tx},
    },
};

/// Most records that are removed in one commit, under the lock of the log's writers.
const STEP_RECORDS_MAX: i64 = 5000;

/// Removes the records before a time, and returns their number.
///
/// # Errors
///
/// The database, the key or the head cannot be read or written.
pub(super) async fn prune_records(
    store: &PostgresStore,
    before_ms: u64,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    // The records of removals that this run adds stay, however late `before_ms` is.
    let mut end = None;
    loop {
        chain::append_records(store, Vec::new(), true).await?;
        let args = (store.clone(), before_ms, end);
        let step = store.database.run(Access::Write, &args, |tx, (store, before_ms, end)| {
            Box::pin(prune_step(tx, store, *before_ms, *end))
        });
        let Some(step) = step.await? else { return Ok(removed) };
        chain::advance_head(store, step.last).await?;
        (removed, end) = (removed + step.records, Some(step.end));
    }
}

/// What one commit has removed.
struct PruneStep {
    records: u64,
    /// The record of the removal.
    last: ChainLink,
    /// The number of the last record that may be removed.
    end: u64,
}

async fn prune_step(
    tx: &Tx<'_>,
    store: &PostgresStore,
    before_ms: u64,
    end: Option<u64>,
) -> Result<Option<PruneStep>, PgError> {
    let log = LockedLog::open(tx, store).await?;
    let end = end.unwrap_or(log.end.seq);
    let sql = "SELECT seq, text, hash FROM audit WHERE seq <= $1 ORDER BY seq LIMIT $2";
    let sql_end = i64::try_from(end).unwrap_or(i64::MAX);
    let rows = tx.rows(sql, &[&sql_end, &STEP_RECORDS_MAX]).await?;
    let rows = transaction::read_all(&rows, rows::read_row)?;
    let Some(through) = remark::last_removable_seq(&rows, before_ms) else { return Ok(None) };
    let mut walk = ChainWalk::new(rows::find_start(tx).await?, &log.key, None);
    rows::walk_through(&mut walk, tx, through).await?;
    let number = i64::try_from(through).unwrap_or(i64::MAX);
    tx.execute("DELETE FROM audit WHERE seq <= $1", &[&number]).await?;
    let (records, pruned, through) = (walk.records, walk.pruned, walk.end);
    let problems = walk.problems.into_list();
    let remark = AuditRemark::Pruned { records: pruned + records, through, problems };
    let added = log.link_lines(&[remark.render_line()])?;
    rows::insert_records(tx, &added).await?;
    let last = added.last().map_or(log.end, |(link, _)| *link);
    Ok(Some(PruneStep { records, last, end }))
}
