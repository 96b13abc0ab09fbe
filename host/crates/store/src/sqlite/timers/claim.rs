//! Which timers are due, and which process fires one.

use rusqlite::{Connection, params};
use sallyport_contract::services::StoredTimer;

use super::rows::{self, COLUMNS};
use crate::{
    process::{self, ProcessIdentity, ProcessLiveness},
    sql_integer::to_sql_integer,
    timers::{TimerClaim, row::DUE_MAX},
};

pub(super) fn list_due_timers(
    connection: &Connection,
    now_ms: u64,
) -> rusqlite::Result<Vec<StoredTimer>> {
    let sql = format!("SELECT {COLUMNS} FROM timer WHERE due_ms <= ?1 ORDER BY due_ms, key");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([to_sql_integer(now_ms)], rows::read_timer)?;
    let free =
        rows.filter(|row| row.as_ref().map_or(true, |row| row.is_claimable(now_ms, has_ended)));
    free.map(|row| Ok(row?.timer)).take(DUE_MAX).collect()
}

/// Claims a timer. The caller must hold the write lock.
pub(super) fn claim_timer(
    connection: &Connection,
    id: &str,
    now_ms: u64,
    lease_ms: u64,
) -> rusqlite::Result<Option<TimerClaim>> {
    let row = rows::find_timer(connection, id)?.filter(|row| row.is_claimable(now_ms, has_ended));
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

fn has_ended(holder: &str) -> bool {
    process::liveness_by_name(holder) == ProcessLiveness::Ended
}
