//! Claims: which process fires a timer, and how a claim ends.

use rusqlite::{Connection, params};
use sallyport_contract::services::{StoredTimer, TimerFiring};

use super::{
    LATE_MS,
    rows::{self, COLUMNS, TimerRow},
};
use crate::{
    database::to_sql_integer,
    process::{self, ProcessIdentity, ProcessLiveness},
};

/// Most timers that are listed as due. The caller lists the others after these.
const DUE_MAX: usize = 64;

/// The right to fire a timer once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerClaim {
    /// The firing.
    pub firing: TimerFiring,
    key: i64,
    number: i64,
    /// The next time of the timer, once this firing is settled.
    next_ms: Option<u64>,
}

/// A claim that is about to be made.
pub(super) struct ClaimLease<'p> {
    pub(super) holder: &'p ProcessIdentity,
    pub(super) now_ms: u64,
    pub(super) until_ms: u64,
}

impl ClaimLease<'static> {
    /// A lease for this process.
    pub(super) fn for_current_process(now_ms: u64, lease_ms: u64) -> Self {
        Self {
            holder: ProcessIdentity::current_process(),
            now_ms,
            until_ms: now_ms.saturating_add(lease_ms),
        }
    }
}

impl TimerRow {
    /// Whether the timer is due and not claimed.
    fn is_claimable(&self, now_ms: u64) -> bool {
        let is_claimed = self.process.as_deref().is_some_and(|holder| {
            process::liveness_by_name(holder) != ProcessLiveness::Ended
                && self.lease_ms.is_some_and(|end| end > now_ms)
        });
        self.timer.next_ms <= now_ms && !is_claimed
    }

    fn to_firing(&self, now_ms: u64, next_ms: Option<u64>) -> TimerFiring {
        let due_ms = self.timer.next_ms;
        let Self { timer, set_ms, process, again, .. } = self;
        let again = *again || process.is_some();
        let late = again || now_ms - due_ms > LATE_MS;
        let missed = sallyport_schedule::count_missed(&timer.schedule, *set_ms, due_ms, now_ms);
        let timer = StoredTimer { next_ms: next_ms.unwrap_or(due_ms), ..timer.clone() };
        TimerFiring { timer, due_ms, late, missed: missed.unwrap_or(0), will_repeat: again }
    }

    /// Returns the next time of a repeated timer. A timer whose calendar can no longer be parsed,
    /// or has ended, fires for the last time.
    fn next_firing_ms(&self, now_ms: u64) -> Option<u64> {
        sallyport_schedule::next_firing_ms(&self.timer.schedule, self.set_ms, now_ms).ok().flatten()
    }
}

pub(super) fn list_due_timers(
    connection: &Connection,
    now_ms: u64,
) -> rusqlite::Result<Vec<StoredTimer>> {
    let sql = format!("SELECT {COLUMNS} FROM timer WHERE due_ms <= ?1 ORDER BY due_ms, key");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([to_sql_integer(now_ms)], TimerRow::from_row)?;
    let free = rows.filter(|row| row.as_ref().map_or(true, |row| row.is_claimable(now_ms)));
    free.map(|row| Ok(row?.timer)).take(DUE_MAX).collect()
}

/// Claims a timer. The caller must hold the write lock.
pub(super) fn claim_timer(
    connection: &Connection,
    id: &str,
    lease: &ClaimLease<'_>,
) -> rusqlite::Result<Option<TimerClaim>> {
    let row = rows::find_timer(connection, id)?.filter(|row| row.is_claimable(lease.now_ms));
    let Some(row) = row else { return Ok(None) };
    let (key, number) = (row.key, row.claims + 1);
    let next_ms = row.next_firing_ms(lease.now_ms);
    let firing = row.to_firing(lease.now_ms, next_ms);
    let sql =
        "UPDATE timer SET claims = ?2, process = ?3, lease_ms = ?4, again = ?5 WHERE key = ?1";
    let (holder, until_ms) = (lease.holder.to_string(), to_sql_integer(lease.until_ms));
    connection.execute(sql, params![key, number, holder, until_ms, firing.will_repeat])?;
    Ok(Some(TimerClaim { firing, key, number, next_ms }))
}

pub(super) fn renew_claim(
    connection: &Connection,
    claim: &TimerClaim,
    until_ms: u64,
) -> rusqlite::Result<bool> {
    let sql = "UPDATE timer SET lease_ms = ?3
        WHERE key = ?1 AND claims = ?2 AND process IS NOT NULL";
    Ok(connection.execute(sql, (claim.key, claim.number, to_sql_integer(until_ms)))? > 0)
}

pub(super) fn complete_claim(
    connection: &Connection,
    claim: &TimerClaim,
) -> rusqlite::Result<bool> {
    let Some(next_ms) = claim.next_ms else {
        let sql = "DELETE FROM timer WHERE key = ?1 AND claims = ?2 AND process IS NOT NULL";
        return Ok(connection.execute(sql, (claim.key, claim.number))? > 0);
    };
    let sql = "UPDATE timer SET due_ms = ?3, process = NULL, lease_ms = NULL, again = 0
        WHERE key = ?1 AND claims = ?2 AND process IS NOT NULL";
    Ok(connection.execute(sql, (claim.key, claim.number, to_sql_integer(next_ms)))? > 0)
}

/// Gives a claim back. If `has_begun`, the next firing has `again` set.
pub(super) fn release_claim(
    connection: &Connection,
    claim: &TimerClaim,
    has_begun: bool,
) -> rusqlite::Result<bool> {
    let sql = "UPDATE timer SET process = NULL, lease_ms = NULL, again = again OR ?3
        WHERE key = ?1 AND claims = ?2 AND process IS NOT NULL";
    Ok(connection.execute(sql, (claim.key, claim.number, has_begun))? > 0)
}
