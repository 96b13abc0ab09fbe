//! The groups and the usage of users in PostgreSQL.

use sallyport_contract::async_trait;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    error::PgError,
    transaction::Tx,
    values::{Columns, escape, hash_key},
};
use crate::{
    error::StoreError,
    sql_integer::to_sql_integer,
    users::{CallLimit, USAGE_DAYS_MAX, UserStore, UserUsage, check_user, groups_text},
};

/// The tables. `key` is the hash of the user's name, which may be longer than an index takes.
pub(super) const TABLES: &str = "
    CREATE TABLE login_groups (
        key BYTEA PRIMARY KEY,
        user_id TEXT NOT NULL,
        groups TEXT NOT NULL
    );
    CREATE TABLE user_usage (
        key BYTEA NOT NULL,
        user_id TEXT NOT NULL,
        day BIGINT NOT NULL,
        calls BIGINT NOT NULL,
        tokens BIGINT NOT NULL,
        micro_usd BIGINT NOT NULL,
        PRIMARY KEY (key, day)
    );
";

#[async_trait]
impl UserStore for PostgresStore {
    async fn set_login_groups(&self, user: &str, groups: &[String]) -> Result<(), StoreError> {
        check_user(user)?;
        self.write((user.to_owned(), groups_text(groups)?), |tx, (user, groups)| {
            Box::pin(async move {
                let sql = "INSERT INTO login_groups (key, user_id, groups) VALUES ($1, $2, $3)
                    ON CONFLICT (key) DO UPDATE SET groups = excluded.groups";
                let (key, user, groups) = (hash_key(&[user]), escape(user), escape(groups));
                tx.execute(sql, &[&key, &user, &groups]).await.map(drop)
            })
        })
        .await
    }

    async fn login_groups(&self, user: &str) -> Result<Vec<String>, StoreError> {
        self.read(user.to_owned(), |tx, user| {
            Box::pin(async move {
                let sql = "SELECT groups FROM login_groups WHERE key = $1";
                let row = tx.row(sql, &[&hash_key(&[user])]).await?;
                row.as_ref().map_or(Ok(Vec::new()), read_groups)
            })
        })
        .await
    }

    async fn count_call(
        &self,
        user: &str,
        day: u64,
        limits: &[CallLimit],
    ) -> Result<Option<usize>, StoreError> {
        check_user(user)?;
        self.write((user.to_owned(), day, limits.to_vec()), |tx, (user, day, limits)| {
            Box::pin(count_in(tx, user, *day, limits))
        })
        .await
    }

    async fn add_usage(&self, user: &str, day: u64, used: UserUsage) -> Result<(), StoreError> {
        check_user(user)?;
        self.write((user.to_owned(), day, used), |tx, (user, day, used)| {
            Box::pin(async move {
                lock_usage(tx, user).await?;
                add_in(tx, user, *day, *used).await
            })
        })
        .await
    }

    async fn usage_since(&self, user: &str, first_day: u64) -> Result<UserUsage, StoreError> {
        self.read((user.to_owned(), first_day), |tx, (user, first_day)| {
            Box::pin(sum_since(tx, user, *first_day))
        })
        .await
    }
}

/// Counts a call, unless a limit is reached; returns the position of the first one that is.
async fn count_in(
    tx: &Tx<'_>,
    user: &str,
    day: u64,
    limits: &[CallLimit],
) -> Result<Option<usize>, PgError> {
    lock_usage(tx, user).await?;
    for (index, limit) in limits.iter().enumerate() {
        if sum_since(tx, user, limit.first_day).await?.calls >= limit.calls_max {
            return Ok(Some(index));
        }
    }
    add_in(tx, user, day, UserUsage::one_call()).await?;
    Ok(None)
}

/// Lets one machine at a time count for a user: otherwise two would both count one less than there
/// are, or one would overwrite the sum of the other.
async fn lock_usage(tx: &Tx<'_>, user: &str) -> Result<(), PgError> {
    tx.lock("usage", user).await
}

/// Adds usage, after [`lock_usage`], and forgets days that are too old.
async fn add_in(tx: &Tx<'_>, user: &str, day: u64, used: UserUsage) -> Result<(), PgError> {
    let key = hash_key(&[user]);
    let oldest = to_sql_integer(day.saturating_sub(USAGE_DAYS_MAX));
    tx.execute("DELETE FROM user_usage WHERE key = $1 AND day < $2", &[&key, &oldest]).await?;
    let sql = "SELECT * FROM user_usage WHERE key = $1 AND day = $2";
    let before = tx.row(sql, &[&key, &to_sql_integer(day)]).await?;
    let before = before.as_ref().map_or(Ok(UserUsage::default()), read_usage)?;
    let UserUsage { calls, tokens, micro_usd } = before.plus(used);
    let [day, calls, tokens, micro_usd] = [day, calls, tokens, micro_usd].map(to_sql_integer);
    let sql = "INSERT INTO user_usage (key, user_id, day, calls, tokens, micro_usd)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (key, day) DO UPDATE SET
        calls = excluded.calls, tokens = excluded.tokens, micro_usd = excluded.micro_usd";
    let values = (key, escape(user));
    tx.execute(sql, &[&values.0, &values.1, &day, &calls, &tokens, &micro_usd]).await.map(drop)
}

async fn sum_since(tx: &Tx<'_>, user: &str, first_day: u64) -> Result<UserUsage, PgError> {
    let sql = "SELECT * FROM user_usage WHERE key = $1 AND day >= $2";
    let rows = tx.rows(sql, &[&hash_key(&[user]), &to_sql_integer(first_day)]).await?;
    rows.iter().try_fold(UserUsage::default(), |total, row| Ok(total.plus(read_usage(row)?)))
}

fn read_groups(row: &Row) -> Result<Vec<String>, PgError> {
    let text = row.text("groups")?;
    serde_json::from_str(&text).map_err(|error| PgError::Foreign(format!("groups: {error}")))
}

fn read_usage(row: &Row) -> Result<UserUsage, PgError> {
    Ok(UserUsage {
        calls: row.number("calls")?,
        tokens: row.number("tokens")?,
        micro_usd: row.number("micro_usd")?,
    })
}
