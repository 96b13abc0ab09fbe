//! The rows of owners, keys and values. Each function runs within one transaction.

use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};
use sallyport_contract::services::{
    DataOwner, StateStoreError, StateWrite, StoredValue, WriteCondition,
};

use super::StateOwner;
use crate::database::{plugin_name, signed, unsigned};

/// Selects the keys that have not expired.
const LIVES: &str = "(expires_ms IS NULL OR expires_ms > ?1)";

/// The keys to list.
pub(super) struct Page<'p> {
    pub(super) prefix: &'p str,
    pub(super) after: Option<&'p str>,
    pub(super) limit: usize,
}

/// An owner's row before a change.
struct OwnerRow {
    key: i64,
    version: u64,
    bytes: u64,
}

/// A key's row before a change.
struct Present {
    version: u64,
    bytes: u64,
}

pub(super) fn get(
    connection: &Connection,
    owner: &DataOwner,
    key: &str,
    now_ms: u64,
) -> rusqlite::Result<Option<StoredValue>> {
    let sql = format!(
        "SELECT value, state.version FROM state JOIN state_owner ON state_owner.key = owner
         WHERE plugin = ?2 AND user = ?3 AND name = ?4 AND {LIVES}"
    );
    let values = params![signed(now_ms), owner.plugin.as_str(), owner.user, key.as_bytes()];
    let read =
        |row: &Row<'_>| Ok(StoredValue { value: row.get(0)?, version: unsigned(row.get(1)?) });
    connection.query_row(&sql, values, read).optional()
}

/// Stores a value. Expired keys must have been purged.
pub(super) fn set(
    connection: &Connection,
    owner: &DataOwner,
    key: &str,
    write: &StateWrite<'_>,
    expires_ms: Option<u64>,
) -> rusqlite::Result<Result<u64, StateStoreError>> {
    let owner = ensured(connection, owner)?;
    let present = present(connection, owner.key, key)?;
    let had = present.as_ref().map_or(0, |present| present.bytes);
    let bytes = owner.bytes.saturating_sub(had).saturating_add(size(key, write.value));
    if let Err(refused) = check(write, present.as_ref(), bytes) {
        return Ok(Err(refused));
    }
    let version = owner.version + 1;
    let sql = "INSERT OR REPLACE INTO state (owner, name, value, version, expires_ms)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let (name, expires_ms) = (key.as_bytes(), expires_ms.map(signed));
    connection.execute(sql, params![owner.key, name, write.value, signed(version), expires_ms])?;
    let sql = "UPDATE state_owner SET version = ?2, bytes = ?3 WHERE key = ?1";
    connection.execute(sql, (owner.key, signed(version), signed(bytes)))?;
    Ok(Ok(version))
}

/// # Errors
///
/// The key is not as expected, or the value exceeds the quota.
fn check(
    write: &StateWrite<'_>,
    present: Option<&Present>,
    bytes: u64,
) -> Result<(), StateStoreError> {
    let present = present.map(|present| present.version);
    let fits = match write.expected {
        WriteCondition::Anything => true,
        WriteCondition::Nothing => present.is_none(),
        WriteCondition::Version(version) => present == Some(version),
    };
    if !fits {
        return Err(StateStoreError::Conflict { present });
    }
    if bytes > write.quota_bytes {
        return Err(StateStoreError::QuotaReached { needed: bytes, quota: write.quota_bytes });
    }
    Ok(())
}

/// Deletes a key. Expired keys must have been purged.
pub(super) fn delete(
    connection: &Connection,
    owner: &DataOwner,
    key: &str,
) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM state WHERE name = ?3
        AND owner = (SELECT key FROM state_owner WHERE plugin = ?1 AND user = ?2)
        RETURNING owner, length(name) + length(value)";
    let values = params![owner.plugin.as_str(), owner.user, key.as_bytes()];
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let Some(gone) = connection.query_row(sql, values, read).optional()? else { return Ok(false) };
    connection.execute("UPDATE state_owner SET bytes = bytes - ?2 WHERE key = ?1", gone)?;
    Ok(true)
}

pub(super) fn list(
    connection: &Connection,
    owner: &DataOwner,
    page: &Page<'_>,
    now_ms: u64,
) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        "SELECT name FROM state JOIN state_owner ON state_owner.key = owner
         WHERE plugin = ?2 AND user = ?3 AND name >= ?4 AND (?5 IS NULL OR name < ?5)
         AND (?6 IS NULL OR name > ?6) AND {LIVES} ORDER BY name LIMIT ?7"
    );
    let mut statement = connection.prepare(&sql)?;
    let names = statement.query_map(
        params![
            signed(now_ms),
            owner.plugin.as_str(),
            owner.user,
            page.prefix.as_bytes(),
            end_of(page.prefix),
            page.after.map(str::as_bytes),
            signed(page.limit as u64),
        ],
        |row| name(row.get(0)?),
    )?;
    names.collect()
}

/// Returns the upper bound of the names with a prefix. The last byte of UTF-8 text is never 255, so
/// it can be incremented.
fn end_of(prefix: &str) -> Option<Vec<u8>> {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

fn name(bytes: Vec<u8>) -> rusqlite::Result<String> {
    String::from_utf8(bytes)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(error)))
}

/// Deletes the expired keys of all owners.
pub(super) fn purge(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE state_owner SET bytes = bytes - gone.size
        FROM (SELECT owner, sum(length(name) + length(value)) AS size FROM state
            WHERE expires_ms <= ?1 GROUP BY owner) AS gone
        WHERE key = gone.owner";
    connection.execute(sql, [signed(now_ms)])?;
    connection.execute("DELETE FROM state WHERE expires_ms <= ?1", [signed(now_ms)])?;
    Ok(())
}

pub(super) fn owners(connection: &Connection, now_ms: u64) -> rusqlite::Result<Vec<StateOwner>> {
    let sql = format!(
        "SELECT plugin, user, count(*) AS names, sum(length(name) + length(value)) AS size
         FROM state JOIN state_owner ON state_owner.key = owner
         WHERE {LIVES} GROUP BY owner ORDER BY plugin, user"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([signed(now_ms)], |row| {
        Ok(StateOwner {
            owner: DataOwner { plugin: plugin_name(row, "plugin")?, user: row.get("user")? },
            keys: unsigned(row.get("names")?),
            bytes: unsigned(row.get("size")?),
        })
    })?;
    rows.collect()
}

/// Deletes all keys of an owner, and returns their number without the expired ones.
pub(super) fn clear(
    connection: &Connection,
    owner: &DataOwner,
    now_ms: u64,
) -> rusqlite::Result<usize> {
    purge(connection, now_ms)?;
    let Some(row) = find(connection, owner)? else { return Ok(0) };
    connection.execute("UPDATE state_owner SET bytes = 0 WHERE key = ?1", [row.key])?;
    connection.execute("DELETE FROM state WHERE owner = ?1", [row.key])
}

fn ensured(connection: &Connection, owner: &DataOwner) -> rusqlite::Result<OwnerRow> {
    if let Some(row) = find(connection, owner)? {
        return Ok(row);
    }
    let sql = "INSERT INTO state_owner (plugin, user, version, bytes) VALUES (?1, ?2, 0, 0)";
    connection.execute(sql, (owner.plugin.as_str(), &owner.user))?;
    Ok(OwnerRow { key: connection.last_insert_rowid(), version: 0, bytes: 0 })
}

fn find(connection: &Connection, owner: &DataOwner) -> rusqlite::Result<Option<OwnerRow>> {
    let sql = "SELECT key, version, bytes FROM state_owner WHERE plugin = ?1 AND user = ?2";
    let read = |row: &Row<'_>| {
        let (version, bytes) = (unsigned(row.get("version")?), unsigned(row.get("bytes")?));
        Ok(OwnerRow { key: row.get("key")?, version, bytes })
    };
    connection.query_row(sql, (owner.plugin.as_str(), &owner.user), read).optional()
}

fn present(connection: &Connection, owner: i64, key: &str) -> rusqlite::Result<Option<Present>> {
    let sql = "SELECT version, length(name) + length(value) AS size FROM state
        WHERE owner = ?1 AND name = ?2";
    let read = |row: &Row<'_>| {
        Ok(Present { version: unsigned(row.get("version")?), bytes: unsigned(row.get("size")?) })
    };
    connection.query_row(sql, params![owner, key.as_bytes()], read).optional()
}

fn size(key: &str, value: &[u8]) -> u64 {
    key.len() as u64 + value.len() as u64
}
