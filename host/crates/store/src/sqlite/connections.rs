//! The connections in SQLite.

use rusqlite::{OptionalExtension, Row, params};
use sallyport_contract::async_trait;

use super::SqliteStore;
use crate::{
    connections::{
        ConnectionStatus, ConnectionStore, NewConnection, SealedTokens, StoredConnection,
    },
    error::StoreError,
    sql_integer::to_sql_integer,
};

/// The table. The tokens are sealed.
pub(super) const TABLE: &str = "
    CREATE TABLE connection (
        id TEXT NOT NULL PRIMARY KEY,
        user_id TEXT NOT NULL,
        plugin_key TEXT NOT NULL,
        plugin_name TEXT NOT NULL,
        access_token BLOB NOT NULL,
        refresh_token BLOB,
        issued_at INTEGER NOT NULL,
        expires_at INTEGER,
        scope TEXT NOT NULL,
        status TEXT NOT NULL,
        profile_data TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        version INTEGER NOT NULL,
        refresh_until INTEGER NOT NULL DEFAULT 0,
        UNIQUE (user_id, plugin_key)
    ) STRICT;
";

const COLUMNS: &str = "id, user_id, plugin_key, plugin_name, access_token, refresh_token, \
     issued_at, expires_at, scope, status, profile_data, created_at, version";

#[async_trait]
impl ConnectionStore for SqliteStore {
    async fn save_connection(&self, new: NewConnection) -> Result<(), StoreError> {
        new.check_lengths()?;
        let sql = format!(
            "INSERT INTO connection ({COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1)
             ON CONFLICT (user_id, plugin_key) DO UPDATE SET
                id = excluded.id, plugin_name = excluded.plugin_name,
                access_token = excluded.access_token, refresh_token = excluded.refresh_token,
                issued_at = excluded.issued_at, expires_at = excluded.expires_at,
                scope = excluded.scope, status = excluded.status,
                profile_data = excluded.profile_data, created_at = excluded.created_at,
                version = version + 1, refresh_until = 0"
        );
        self.write(move |connection| {
            let SealedTokens { access_token, refresh_token, issued_at_ms, expires_at_ms, scope } =
                new.tokens;
            connection.execute(
                &sql,
                params![
                    new.id,
                    new.user_id,
                    new.plugin_key,
                    new.plugin_name,
                    access_token,
                    refresh_token,
                    to_sql_integer(issued_at_ms),
                    expires_at_ms.map(to_sql_integer),
                    scope,
                    ConnectionStatus::Active.as_str(),
                    new.profile_data,
                    to_sql_integer(new.created_at_ms),
                ],
            )
        })
        .await
        .map(drop)
    }

    async fn find_connection(
        &self,
        user_id: &str,
        plugin_key: &str,
    ) -> Result<Option<StoredConnection>, StoreError> {
        let (user_id, plugin_key) = (user_id.to_owned(), plugin_key.to_owned());
        let sql =
            format!("SELECT {COLUMNS} FROM connection WHERE user_id = ?1 AND plugin_key = ?2");
        self.read(move |connection| {
            connection.query_row(&sql, params![user_id, plugin_key], read_connection).optional()
        })
        .await
    }

    async fn list_connections(&self, user_id: &str) -> Result<Vec<StoredConnection>, StoreError> {
        let user_id = user_id.to_owned();
        let sql =
            format!("SELECT {COLUMNS} FROM connection WHERE user_id = ?1 ORDER BY plugin_key");
        self.read(move |connection| {
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([user_id], read_connection)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })
        .await
    }

    async fn claim_refresh(
        &self,
        of: &StoredConnection,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE connection SET refresh_until = ?4
            WHERE user_id = ?1 AND plugin_key = ?2 AND version = ?3 AND refresh_until <= ?5";
        let (user_id, plugin_key, version) = key_of(of);
        let (now, until) = (to_sql_integer(now_ms), to_sql_integer(until_ms));
        self.write(move |connection| {
            connection.execute(sql, params![user_id, plugin_key, version, until, now])
        })
        .await
        .map(|count| count == 1)
    }

    async fn release_refresh(&self, of: &StoredConnection) -> Result<(), StoreError> {
        let sql = "UPDATE connection SET refresh_until = 0
            WHERE user_id = ?1 AND plugin_key = ?2 AND version = ?3";
        let (user_id, plugin_key, version) = key_of(of);
        self.write(move |connection| connection.execute(sql, params![user_id, plugin_key, version]))
            .await
            .map(drop)
    }

    async fn replace_tokens(
        &self,
        of: &StoredConnection,
        tokens: SealedTokens,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE connection SET access_token = ?4, refresh_token = ?5, issued_at = ?6,
                expires_at = ?7, scope = ?8, status = 'active', version = version + 1,
                refresh_until = 0
            WHERE user_id = ?1 AND plugin_key = ?2 AND version = ?3";
        let (user_id, plugin_key, version) = key_of(of);
        self.write(move |connection| {
            let SealedTokens { access_token, refresh_token, issued_at_ms, expires_at_ms, scope } =
                tokens;
            connection.execute(
                sql,
                params![
                    user_id,
                    plugin_key,
                    version,
                    access_token,
                    refresh_token,
                    to_sql_integer(issued_at_ms),
                    expires_at_ms.map(to_sql_integer),
                    scope,
                ],
            )
        })
        .await
        .map(|count| count == 1)
    }

    async fn end_connection(
        &self,
        of: &StoredConnection,
        status: ConnectionStatus,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE connection SET status = ?4, access_token = x'', refresh_token = NULL,
                version = version + 1, refresh_until = 0
            WHERE user_id = ?1 AND plugin_key = ?2 AND version = ?3";
        let (user_id, plugin_key, version) = key_of(of);
        self.write(move |connection| {
            connection.execute(sql, params![user_id, plugin_key, version, status.as_str()])
        })
        .await
        .map(|count| count == 1)
    }

    async fn remove_connection(&self, user_id: &str, plugin_key: &str) -> Result<bool, StoreError> {
        let (user_id, plugin_key) = (user_id.to_owned(), plugin_key.to_owned());
        let sql = "DELETE FROM connection WHERE user_id = ?1 AND plugin_key = ?2";
        self.write(move |connection| connection.execute(sql, params![user_id, plugin_key]))
            .await
            .map(|count| count == 1)
    }
}

fn key_of(of: &StoredConnection) -> (String, String, i64) {
    let NewConnection { user_id, plugin_key, .. } = &of.connection;
    (user_id.clone(), plugin_key.clone(), to_sql_integer(of.version))
}

fn read_connection(row: &Row<'_>) -> rusqlite::Result<StoredConnection> {
    let time = |column: &str| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let tokens = SealedTokens {
        access_token: row.get("access_token")?,
        refresh_token: row.get("refresh_token")?,
        issued_at_ms: time("issued_at")?,
        expires_at_ms: row.get::<_, Option<i64>>("expires_at")?.map(i64::unsigned_abs),
        scope: row.get("scope")?,
    };
    let connection = NewConnection {
        id: row.get("id")?,
        user_id: row.get("user_id")?,
        plugin_key: row.get("plugin_key")?,
        plugin_name: row.get("plugin_name")?,
        tokens,
        profile_data: row.get("profile_data")?,
        created_at_ms: time("created_at")?,
    };
    let status = ConnectionStatus::from_word(&row.get::<_, String>("status")?);
    Ok(StoredConnection { connection, status, version: time("version")? })
}
