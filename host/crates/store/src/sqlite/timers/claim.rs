//! Which timers are due, and which process fires one.

use rusqlite::{Connection, params};
use sallyport_contract::services::{StoredTimer, TimerFiring};

use super::rows::{self, COLUMNS, TimerRow};
use crate::{
    sqlite::{
        database::to_sql_integer,
        process::{self, ProcessIdentity, ProcessLiveness},
    },
    timers::{LATE_MS, TimerClaim},
};

/// Most timers that are listed as due. The caller lists the others after these.
const DUE_MAX: usize = 64;

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
    now_ms: u64,
    lease_ms: u64,
) -> rusqlite::Result<Option<TimerClaim>> {
    let row = rows::find_timer(connection, id)?.filter(|row| row.is_claimable(now_ms));
    let Some(row) = row else { return Ok(None) };
    let number = row.claims + 1;
    let next_ms = row.next_firing_ms(now_ms);
    let firing = row.to_firing(now_ms, next_ms);
    let sql =
        "UPDATE timer SET claims = ?2, process = ?3, lease_ms = ?4, again = ?5 WHERE key = ?1";
    let holder = ProcessIdentity::current_process().to_string();
    let until_ms = to_sql_integer(now_ms.saturating_add(lease_ms));
    connection.execute(sql, params![row.key, number, holder, until_ms, firing.will_repeat])?;
    Ok(Some(TimerClaim { firing, number, next_ms }))
}
