//! A row of the log as it is stored in the database, unverified.

use blake3::{Hash, OUT_LEN};
use rusqlite::{Connection, OptionalExtension, types::ValueRef};

use super::link::ChainLink;

/// The columns that [`AuditRow::from_row`] expects.
pub(super) const COLUMNS: &str = "seq, text, hash";

/// A row. A column of the wrong type reads as empty, which no hash fits.
#[derive(Debug)]
pub(super) struct AuditRow {
    /// The record's number and its stored hash.
    pub(super) link: ChainLink,
    /// The record.
    pub(super) text: Vec<u8>,
}

impl AuditRow {
    pub(super) fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let text = match row.get_ref("text")? {
            ValueRef::Text(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        let hash: [u8; OUT_LEN] = match row.get_ref("hash")? {
            ValueRef::Blob(bytes) => bytes.try_into().unwrap_or_default(),
            _ => [0; OUT_LEN],
        };
        let seq = u64::try_from(row.get::<_, i64>("seq")?).unwrap_or_default();
        Ok(Self { link: ChainLink { seq, hash: Hash::from_bytes(hash) }, text })
    }

    /// The text; empty if it is not valid UTF-8.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

/// Reads the last rows of the log, newest first.
pub(super) fn read_last_rows(
    connection: &Connection,
    count: u32,
) -> rusqlite::Result<Vec<AuditRow>> {
    let sql = format!("SELECT {COLUMNS} FROM audit ORDER BY seq DESC LIMIT ?1");
    connection.prepare(&sql)?.query_map([count], AuditRow::from_row)?.collect()
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
    connection.query_row(&sql, [number], |row| Ok(AuditRow::from_row(row)?.link)).optional()
}
