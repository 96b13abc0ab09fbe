//! The rows of timers, regardless of their owners.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sallyport_contract::services::{DataOwner, StoredTimer, TimerRequest, TimerSchedule};

use crate::{
    sql_integer::{from_sql_integer, to_sql_integer},
    sqlite::database::{foreign_value_error, read_plugin_name},
    timers::row::{TimerRow, parse_timer_key, timer_id},
};

/// The columns that [`read_timer`] expects.
pub(super) const COLUMNS: &str = "key, plugin, user, session_id, label, payload, moment, set_ms,
    due_ms, claims, process, lease_ms, again";

/// Reads a row with [`COLUMNS`].
pub(super) fn read_timer(row: &Row<'_>) -> rusqlite::Result<TimerRow> {
    let key = row.get("key")?;
    let timer = StoredTimer {
        id: timer_id(key),
        owner: DataOwner { plugin: read_plugin_name(row, "plugin")?, user: row.get("user")? },
        schedule: read_moment(row)?,
        next_ms: from_sql_integer(row.get("due_ms")?),
        label: row.get("label")?,
        payload: row.get("payload")?,
        session_id: row.get("session_id")?,
    };
    Ok(TimerRow {
        key,
        timer,
        set_ms: from_sql_integer(row.get("set_ms")?),
        claims: row.get("claims")?,
        process: row.get("process")?,
        lease_ms: row.get::<_, Option<i64>>("lease_ms")?.map(from_sql_integer),
        again: row.get("again")?,
    })
}

fn read_moment(row: &Row<'_>) -> rusqlite::Result<TimerSchedule> {
    let text: String = row.get("moment")?;
    serde_json::from_str(&text).map_err(|error| foreign_value_error(row, "moment", error))
}

pub(super) fn find_timer(connection: &Connection, id: &str) -> rusqlite::Result<Option<TimerRow>> {
    let sql = format!("SELECT {COLUMNS} FROM timer WHERE key = ?1");
    connection.query_row(&sql, [parse_timer_key(id)], read_timer).optional()
}

/// Counts an owner's timers, without one-shot timers that are firing, because such a timer may set
/// its own successor.
pub(super) fn count_timers(connection: &Connection, owner: &DataOwner) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM timer
        WHERE plugin = ?1 AND user = ?2 AND (repeats OR process IS NULL)";
    connection
        .query_row(sql, (owner.plugin.as_str(), &owner.user), |row| row.get(0))
        .map(from_sql_integer)
}

pub(super) fn insert_timer(
    connection: &Connection,
    owner: &DataOwner,
    plan: TimerRequest,
    set_ms: u64,
    due_ms: u64,
) -> rusqlite::Result<StoredTimer> {
    let sql = "INSERT INTO timer
        (plugin, user, session_id, label, payload, moment, repeats, set_ms, due_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let TimerRequest { schedule: moment, label, payload, session_id, .. } = plan;
    let written = serde_json::to_string(&moment).expect("a moment is plain data");
    connection.execute(
        sql,
        params![
            owner.plugin.as_str(),
            owner.user,
            session_id,
            label,
            payload,
            written,
            sallyport_schedule::is_repeating(&moment),
            to_sql_integer(set_ms),
            to_sql_integer(due_ms)
        ],
    )?;
    let id = timer_id(connection.last_insert_rowid());
    Ok(StoredTimer {
        id,
        owner: owner.clone(),
        schedule: moment,
        next_ms: due_ms,
        label,
        payload,
        session_id,
    })
}

/// Removes a timer and returns it. With an owner, only a timer of that owner.
pub(super) fn cancel_timer(
    connection: &Connection,
    id: &str,
    owner: Option<&DataOwner>,
) -> rusqlite::Result<Option<StoredTimer>> {
    let Some(row) = find_timer(connection, id)? else { return Ok(None) };
    if owner.is_some_and(|owner| *owner != row.timer.owner) {
        return Ok(None);
    }
    connection.execute("DELETE FROM timer WHERE key = ?1", [row.key])?;
    Ok(Some(row.timer))
}

/// Lists the timers of an owner, or of all, next to fire first.
pub(super) fn list_timers(
    connection: &Connection,
    owner: Option<&DataOwner>,
) -> rusqlite::Result<Vec<StoredTimer>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM timer WHERE (?1 IS NULL OR plugin = ?1)
         AND (?2 IS NULL OR user = ?2)
         ORDER BY due_ms, key"
    );
    let plugin = owner.map(|owner| owner.plugin.as_str());
    let user = owner.map(|owner| owner.user.as_str());
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map((plugin, user), read_timer)?;
    rows.map(|row| Ok(row?.timer)).collect()
}

pub(super) fn next_due_ms(connection: &Connection, after_ms: u64) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT min(at_ms) FROM (
            SELECT CASE WHEN process IS NULL THEN due_ms ELSE max(due_ms, lease_ms) END AS at_ms
            FROM timer
        ) WHERE at_ms > ?1";
    let next: Option<i64> =
        connection.query_row(sql, [to_sql_integer(after_ms)], |row| row.get(0))?;
    Ok(next.map(from_sql_integer))
}
