//! The rows of the log in SQLite, unverified.

use blake3::{Hash, OUT_LEN};
use rusqlite::{Connection, OptionalExtension, Row, types::ValueRef};

use crate::audit::chain::{
    AuditRow,
    link::ChainLink,
    remark::{self, ChainStart},
    walk::ChainWalk,
};

/// The columns that [`read_row`] expects.
pub(super) const COLUMNS: &str = "seq, text, hash";

/// Reads a row. A column of the wrong type reads as empty, which no hash fits.
pub(super) fn read_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    let text = match row.get_ref("text")? {
        ValueRef::Text(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    };
    let hash: [u8; OUT_LEN] = match row.get_ref("hash")? {
        ValueRef::Blob(bytes) => bytes.try_into().unwrap_or_default(),
        _ => [0; OUT_LEN],
    };
    let seq = u64::try_from(row.get::<_, i64>("seq")?).unwrap_or_default();
    Ok(AuditRow { link: ChainLink { seq, hash: Hash::from_bytes(hash) }, text })
}

/// Reads the last rows of the log, newest first.
pub(super) fn read_last_rows(
    connection: &Connection,
    count: u32,
) -> rusqlite::Result<Vec<AuditRow>> {
    let sql = format!("SELECT {COLUMNS} FROM audit ORDER BY seq DESC LIMIT ?1");
    connection.prepare_cached(&sql)?.query_map([count], read_row)?.collect()
}

/// Returns the number of the first row.
pub(super) fn read_first_seq(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let seq: Option<i64> =
        connection.query_row("SELECT min(seq) FROM audit", (), |row| row.get(0))?;
    Ok(seq.map(|seq| u64::try_from(seq).unwrap_or_default()))
}

/// Returns the link of the last row.
pub(super) fn read_last_link(connection: &Connection) -> rusqlite::Result<ChainLink> {
    Ok(read_last_rows(connection, 1)?.pop().map_or(ChainLink::GENESIS, |row| row.link))
}

/// Returns the link of the row with this number, if it exists.
pub(super) fn read_link(connection: &Connection, seq: u64) -> rusqlite::Result<Option<ChainLink>> {
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq = ?1");
    let number = i64::try_from(seq).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([number], |row| Ok(read_row(row)?.link)).optional()
}

/// Finds the start of a log whose first record has this number.
pub(super) fn find_start(connection: &Connection, first_seq: u64) -> rusqlite::Result<ChainStart> {
    if first_seq <= 1 {
        return Ok(ChainStart::GENESIS);
    }
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE instr(text, ?1) > 0 ORDER BY seq DESC");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([remark::KEY], |row| Ok(read_row(row)?.text().to_owned()))?;
    ChainStart::from_remarks(rows)
}

/// Takes a walk over all records with a number up to `through`.
pub(super) fn walk_through(
    walk: &mut ChainWalk<'_>,
    connection: &Connection,
    through: u64,
) -> rusqlite::Result<()> {
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq <= ?1 ORDER BY seq");
    let mut statement = connection.prepare(&sql)?;
    let through = i64::try_from(through).unwrap_or(i64::MAX);
    for row in statement.query_map([through], read_row)? {
        walk.visit_record(&row?);
    }
    walk.report_mismatch();
    Ok(())
}
