//! The connections in PostgreSQL.

use sallyport_contract::async_trait;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    error::PgError,
    transaction::{self, Tx},
    values::{Columns, escape},
};
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
        id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        plugin_key TEXT COLLATE \"C\" NOT NULL,
        plugin_name TEXT NOT NULL,
        access_token BYTEA NOT NULL,
        refresh_token BYTEA,
        issued_at BIGINT NOT NULL,
        expires_at BIGINT,
        scope TEXT NOT NULL,
        status TEXT NOT NULL,
        profile_data TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        version BIGINT NOT NULL,
        refresh_until BIGINT NOT NULL DEFAULT 0,
        UNIQUE (user_id, plugin_key)
    );
";

/// A connection of one version, as the statements name it.
type VersionKey = (String, String, i64);

/// Selects a connection of one version.
const OF_VERSION: &str = "user_id = $1 AND plugin_key = $2 AND version = $3";

#[async_trait]
impl ConnectionStore for PostgresStore {
    async fn save_connection(&self, new: NewConnection) -> Result<(), StoreError> {
        new.check_lengths()?;
        self.write(new, |tx, new| Box::pin(save_in(tx, new))).await
    }

    async fn find_connection(
        &self,
        user_id: &str,
        plugin_key: &str,
    ) -> Result<Option<StoredConnection>, StoreError> {
        self.read([user_id, plugin_key].map(str::to_owned), |tx, [user, plugin]| {
            Box::pin(async move {
                let sql = "SELECT * FROM connection WHERE user_id = $1 AND plugin_key = $2";
                let row = tx.row(sql, &[&escape(user), &escape(plugin)]).await?;
                row.as_ref().map(read_connection).transpose()
            })
        })
        .await
    }

    async fn list_connections(&self, user_id: &str) -> Result<Vec<StoredConnection>, StoreError> {
        self.read(user_id.to_owned(), |tx, user| {
            Box::pin(async move {
                let sql = "SELECT * FROM connection WHERE user_id = $1 ORDER BY plugin_key";
                transaction::read_all(&tx.rows(sql, &[&escape(user)]).await?, read_connection)
            })
        })
        .await
    }

    async fn claim_refresh(
        &self,
        of: &StoredConnection,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<bool, StoreError> {
        let times = (to_sql_integer(now_ms), to_sql_integer(until_ms));
        self.write((key_of(of), times), |tx, ((user, plugin, version), (now, until))| {
            Box::pin(async move {
                let sql = format!(
                    "UPDATE connection SET refresh_until = $4
                     WHERE {OF_VERSION} AND refresh_until <= $5"
                );
                Ok(tx.execute(&sql, &[user, plugin, version, until, now]).await? == 1)
            })
        })
        .await
    }

    async fn release_refresh(&self, of: &StoredConnection) -> Result<(), StoreError> {
        self.write(key_of(of), |tx, (user, plugin, version)| {
            Box::pin(async move {
                let sql = format!("UPDATE connection SET refresh_until = 0 WHERE {OF_VERSION}");
                tx.execute(&sql, &[user, plugin, version]).await.map(drop)
            })
        })
        .await
    }

    async fn replace_tokens(
        &self,
        of: &StoredConnection,
        tokens: SealedTokens,
    ) -> Result<bool, StoreError> {
        self.write((key_of(of), tokens), |tx, (key, tokens)| Box::pin(replace_in(tx, key, tokens)))
            .await
    }

    async fn end_connection(
        &self,
        of: &StoredConnection,
        status: ConnectionStatus,
    ) -> Result<bool, StoreError> {
        self.write((key_of(of), status), |tx, ((user, plugin, version), status)| {
            Box::pin(async move {
                let sql = format!(
                    "UPDATE connection SET status = $4, access_token = '', refresh_token = NULL,
                     version = version + 1, refresh_until = 0 WHERE {OF_VERSION}"
                );
                Ok(tx.execute(&sql, &[user, plugin, version, &status.as_str()]).await? == 1)
            })
        })
        .await
    }

    async fn remove_connection(&self, user_id: &str, plugin_key: &str) -> Result<bool, StoreError> {
        self.write([user_id, plugin_key].map(str::to_owned), |tx, [user, plugin]| {
            Box::pin(async move {
                let sql = "DELETE FROM connection WHERE user_id = $1 AND plugin_key = $2";
                Ok(tx.execute(sql, &[&escape(user), &escape(plugin)]).await? == 1)
            })
        })
        .await
    }
}

async fn save_in(tx: &Tx<'_>, new: &NewConnection) -> Result<(), PgError> {
    let sql = "INSERT INTO connection (id, user_id, plugin_key, plugin_name, access_token,
            refresh_token, issued_at, expires_at, scope, status, profile_data, created_at, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'active', $10, $11, 1)
        ON CONFLICT (user_id, plugin_key) DO UPDATE SET
            id = excluded.id, plugin_name = excluded.plugin_name,
            access_token = excluded.access_token, refresh_token = excluded.refresh_token,
            issued_at = excluded.issued_at, expires_at = excluded.expires_at,
            scope = excluded.scope, status = excluded.status,
            profile_data = excluded.profile_data, created_at = excluded.created_at,
            version = connection.version + 1, refresh_until = 0";
    let NewConnection { id, user_id, plugin_key, plugin_name, tokens, profile_data, .. } = new;
    let SealedTokens { access_token, refresh_token, .. } = tokens;
    let (issued_at, created_at) =
        (to_sql_integer(tokens.issued_at_ms), to_sql_integer(new.created_at_ms));
    let expires_at = tokens.expires_at_ms.map(to_sql_integer);
    let texts = [id, user_id, plugin_key, plugin_name, &tokens.scope, profile_data];
    let [id, user, plugin, name, scope, profile] = &texts.map(|text| escape(text));
    tx.execute(
        sql,
        &[
            id,
            user,
            plugin,
            name,
            access_token,
            refresh_token,
            &issued_at,
            &expires_at,
            scope,
            profile,
            &created_at,
        ],
    )
    .await
    .map(drop)
}

async fn replace_in(
    tx: &Tx<'_>,
    (user, plugin, version): &VersionKey,
    tokens: &SealedTokens,
) -> Result<bool, PgError> {
    let sql = format!(
        "UPDATE connection SET access_token = $4, refresh_token = $5, issued_at = $6,
            expires_at = $7, scope = $8, status = 'active', version = version + 1,
            refresh_until = 0
         WHERE {OF_VERSION}"
    );
    let SealedTokens { access_token, refresh_token, issued_at_ms, expires_at_ms, scope } = tokens;
    let (issued_at, expires_at) =
        (to_sql_integer(*issued_at_ms), expires_at_ms.map(to_sql_integer));
    let changed = tx
        .execute(
            &sql,
            &[
                user,
                plugin,
                version,
                access_token,
                refresh_token,
                &issued_at,
                &expires_at,
                &escape(scope),
            ],
        )
        .await?;
    Ok(changed == 1)
}

fn key_of(of: &StoredConnection) -> VersionKey {
    let NewConnection { user_id, plugin_key, .. } = &of.connection;
    (escape(user_id).into_owned(), escape(plugin_key).into_owned(), to_sql_integer(of.version))
}

fn read_connection(row: &Row) -> Result<StoredConnection, PgError> {
    let tokens = SealedTokens {
        access_token: row.value("access_token")?,
        refresh_token: row.value("refresh_token")?,
        issued_at_ms: row.number("issued_at")?,
        expires_at_ms: row.number_option("expires_at")?,
        scope: row.text("scope")?,
    };
    let connection = NewConnection {
        id: row.text("id")?,
        user_id: row.text("user_id")?,
        plugin_key: row.text("plugin_key")?,
        plugin_name: row.text("plugin_name")?,
        tokens,
        profile_data: row.text("profile_data")?,
        created_at_ms: row.number("created_at")?,
    };
    let status = ConnectionStatus::from_word(&row.text("status")?);
    Ok(StoredConnection { connection, status, version: row.number("version")? })
}
