//! The state of plugins in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};
use sallyport_contract::{
    async_trait,
    services::{DataOwner, StateStore, StateStoreError, StateWrite, StoredValue},
};

use super::{SqliteStore, database::read_plugin_name};
use crate::{
    error::StoreError,
    sql_integer::{from_sql_integer, to_sql_integer},
    state::{
        PersistentStateStore, StateKeyRow, StateOwner, StateOwnerRow, expiry_ms, prefix_upper_bound,
    },
};

/// The tables of state. An owner's row stays when its keys are gone, because versions must not
/// repeat. Keys are stored as bytes, and are listed in byte order.
pub(super) const TABLES: &str = "
    CREATE TABLE state_owner (
        key INTEGER PRIMARY KEY,
        plugin TEXT NOT NULL,
        user TEXT NOT NULL,
        version INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        UNIQUE (plugin, user)
    ) STRICT;
    CREATE TABLE state (
        owner INTEGER NOT NULL REFERENCES state_owner (key),
        name BLOB NOT NULL,
        value BLOB NOT NULL,
        version INTEGER NOT NULL,
        expires_ms INTEGER,
        PRIMARY KEY (owner, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX state_expires ON state (expires_ms) WHERE expires_ms IS NOT NULL;
";

/// Selects the keys that have not expired.
const NOT_EXPIRED_SQL: &str = "(expires_ms IS NULL OR expires_ms > ?1)";

#[async_trait]
impl PersistentStateStore for SqliteStore {
    async fn list_owners(&self) -> Result<Vec<StateOwner>, StoreError> {
        let now_ms = self.now_ms();
        self.read(move |connection| {
            let sql = format!(
                "SELECT plugin, user, count(*) AS names, sum(length(name) + length(value)) AS size
                 FROM state JOIN state_owner ON state_owner.key = owner
                 WHERE {NOT_EXPIRED_SQL} GROUP BY owner ORDER BY plugin, user"
            );
            let read = |row: &Row<'_>| {
                let plugin = read_plugin_name(row, "plugin")?;
                Ok(StateOwner {
                    owner: DataOwner { plugin, user: row.get("user")? },
                    keys: from_sql_integer(row.get("names")?),
                    bytes: from_sql_integer(row.get("size")?),
                })
            };
            connection.prepare(&sql)?.query_map([to_sql_integer(now_ms)], read)?.collect()
        })
        .await
    }

    async fn clear_owner(&self, owner: &DataOwner) -> Result<usize, StoreError> {
        let (owner, now_ms) = (owner.clone(), self.now_ms());
        self.write(move |connection| {
            purge_expired(connection, now_ms)?;
            let Some(row) = find_owner_row(connection, &owner)? else { return Ok(0) };
            connection.execute("UPDATE state_owner SET bytes = 0 WHERE key = ?1", [row.key])?;
            connection.execute("DELETE FROM state WHERE owner = ?1", [row.key])
        })
        .await
    }
}

#[async_trait]
impl StateStore for SqliteStore {
    async fn get(
        &self,
        owner: &DataOwner,
        key: &str,
    ) -> Result<Option<StoredValue>, StateStoreError> {
        let (owner, key, now_ms) = (owner.clone(), key.to_owned(), self.now_ms());
        let found = self.read(move |connection| {
            let sql = format!(
                "SELECT value, state.version FROM state JOIN state_owner ON state_owner.key = owner
                 WHERE plugin = ?2 AND user = ?3 AND name = ?4 AND {NOT_EXPIRED_SQL}"
            );
            let now_ms = to_sql_integer(now_ms);
            let values = params![now_ms, owner.plugin.as_str(), owner.user, key.as_bytes()];
            let read = |row: &Row<'_>| {
                Ok(StoredValue { value: row.get(0)?, version: from_sql_integer(row.get(1)?) })
            };
            connection.query_row(&sql, values, read).optional()
        });
        Ok(found.await?)
    }

    async fn set(
        &self,
        owner: &DataOwner,
        key: &str,
        write: StateWrite,
    ) -> Result<u64, StateStoreError> {
        let (owner, key, now_ms) = (owner.clone(), key.to_owned(), self.now_ms());
        let expires_ms = expiry_ms(&write, now_ms);
        let written = self.write(move |connection| {
            purge_expired(connection, now_ms)?;
            set_value(connection, &owner, &key, &write, expires_ms)
        });
        written.await?
    }

    async fn delete(&self, owner: &DataOwner, key: &str) -> Result<bool, StateStoreError> {
        let (owner, key, now_ms) = (owner.clone(), key.to_owned(), self.now_ms());
        let deleted = self.write(move |connection| -> rusqlite::Result<bool> {
            purge_expired(connection, now_ms)?;
            let sql = "DELETE FROM state WHERE name = ?3
                AND owner = (SELECT key FROM state_owner WHERE plugin = ?1 AND user = ?2)
                RETURNING owner, length(name) + length(value)";
            let values = params![owner.plugin.as_str(), owner.user, key.as_bytes()];
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            let Some(entry) = connection.query_row(sql, values, read).optional()? else {
                return Ok(false);
            };
            let sql = "UPDATE state_owner SET bytes = bytes - ?2 WHERE key = ?1";
            connection.execute(sql, entry)?;
            Ok(true)
        });
        Ok(deleted.await?)
    }

    async fn list_keys(
        &self,
        owner: &DataOwner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateStoreError> {
        let (owner, now_ms) = (owner.clone(), self.now_ms());
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let keys = self.read(move |connection| {
            let sql = format!(
                "SELECT name FROM state JOIN state_owner ON state_owner.key = owner
                 WHERE plugin = ?2 AND user = ?3 AND name >= ?4 AND (?5 IS NULL OR name < ?5)
                 AND (?6 IS NULL OR name > ?6) AND {NOT_EXPIRED_SQL} ORDER BY name LIMIT ?7"
            );
            let values = params![
                to_sql_integer(now_ms),
                owner.plugin.as_str(),
                owner.user,
                prefix.as_bytes(),
                prefix_upper_bound(&prefix),
                after.as_deref().map(str::as_bytes),
                to_sql_integer(limit as u64),
            ];
            connection
                .prepare(&sql)?
                .query_map(values, |row| key_from_bytes(row.get(0)?))?
                .collect()
        });
        Ok(keys.await?)
    }
}

/// Stores a value. Expired keys must have been purged.
fn set_value(
    connection: &Connection,
    owner: &DataOwner,
    key: &str,
    write: &StateWrite,
    expires_ms: Option<u64>,
) -> rusqlite::Result<Result<u64, StateStoreError>> {
    let owner = find_or_insert_owner(connection, owner)?;
    let present = find_key_row(connection, owner.key, key)?;
    let bytes = match owner.check_write(present, key, write) {
        Ok(bytes) => bytes,
        Err(refused) => return Ok(Err(refused)),
    };
    let version = owner.version + 1;
    let sql = "INSERT OR REPLACE INTO state (owner, name, value, version, expires_ms)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let (name, expires_ms) = (key.as_bytes(), expires_ms.map(to_sql_integer));
    connection
        .execute(sql, params![owner.key, name, write.value, to_sql_integer(version), expires_ms])?;
    let sql = "UPDATE state_owner SET version = ?2, bytes = ?3 WHERE key = ?1";
    connection.execute(sql, (owner.key, to_sql_integer(version), to_sql_integer(bytes)))?;
    Ok(Ok(version))
}

fn key_from_bytes(bytes: Vec<u8>) -> rusqlite::Result<String> {
    String::from_utf8(bytes)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(error)))
}

/// Deletes the expired keys of all owners.
fn purge_expired(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE state_owner SET bytes = bytes - gone.size
        FROM (SELECT owner, sum(length(name) + length(value)) AS size FROM state
            WHERE expires_ms <= ?1 GROUP BY owner) AS gone
        WHERE key = gone.owner";
    connection.execute(sql, [to_sql_integer(now_ms)])?;
    connection.execute("DELETE FROM state WHERE expires_ms <= ?1", [to_sql_integer(now_ms)])?;
    Ok(())
}

fn find_or_insert_owner(
    connection: &Connection,
    owner: &DataOwner,
) -> rusqlite::Result<StateOwnerRow> {
    if let Some(row) = find_owner_row(connection, owner)? {
        return Ok(row);
    }
    let sql = "INSERT INTO state_owner (plugin, user, version, bytes) VALUES (?1, ?2, 0, 0)";
    connection.execute(sql, (owner.plugin.as_str(), &owner.user))?;
    Ok(StateOwnerRow { key: connection.last_insert_rowid(), version: 0, bytes: 0 })
}

fn find_owner_row(
    connection: &Connection,
    owner: &DataOwner,
) -> rusqlite::Result<Option<StateOwnerRow>> {
    let sql = "SELECT key, version, bytes FROM state_owner WHERE plugin = ?1 AND user = ?2";
    let read = |row: &Row<'_>| {
        let (version, bytes) =
            (from_sql_integer(row.get("version")?), from_sql_integer(row.get("bytes")?));
        Ok(StateOwnerRow { key: row.get("key")?, version, bytes })
    };
    connection.query_row(sql, (owner.plugin.as_str(), &owner.user), read).optional()
}

fn find_key_row(
    connection: &Connection,
    owner: i64,
    key: &str,
) -> rusqlite::Result<Option<StateKeyRow>> {
    let sql = "SELECT version, length(name) + length(value) AS size FROM state
        WHERE owner = ?1 AND name = ?2";
    let read = |row: &Row<'_>| {
        Ok(StateKeyRow {
            version: from_sql_integer(row.get("version")?),
            bytes: from_sql_integer(row.get("size")?),
        })
    };
    connection.query_row(sql, params![owner, key.as_bytes()], read).optional()
}
