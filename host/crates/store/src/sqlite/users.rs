//! The groups and the usage of users in SQLite.

use rusqlite::{Connection, OptionalExtension, params};
use sallyport_contract::async_trait;

use super::{SqliteStore, database::foreign_value_error};
use crate::{
    error::StoreError,
    sql_integer::{from_sql_integer, to_sql_integer},
    users::{CallLimit, USAGE_DAYS_MAX, UserStore, UserUsage, check_user, groups_text},
};

/// The tables.
pub(super) const TABLES: &str = "
    CREATE TABLE login_groups (
        user TEXT NOT NULL PRIMARY KEY,
        groups TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE user_usage (
        user TEXT NOT NULL,
        day INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        micro_usd INTEGER NOT NULL,
        PRIMARY KEY (user, day)
    ) STRICT, WITHOUT ROWID;
";

#[async_trait]
impl UserStore for SqliteStore {
    async fn set_login_groups(&self, user: &str, groups: &[String]) -> Result<(), StoreError> {
        check_user(user)?;
        let (user, groups) = (user.to_owned(), groups_text(groups)?);
        let sql = "INSERT OR REPLACE INTO login_groups (user, groups) VALUES (?1, ?2)";
        self.write(move |connection| connection.execute(sql, params![user, groups])).await.map(drop)
    }

    async fn login_groups(&self, user: &str) -> Result<Vec<String>, StoreError> {
        let user = user.to_owned();
        let sql = "SELECT groups FROM login_groups WHERE user = ?1";
        self.read(move |connection| {
            let read = |row: &rusqlite::Row<'_>| {
                let text: String = row.get("groups")?;
                serde_json::from_str(&text)
                    .map_err(|error| foreign_value_error(row, "groups", error))
            };
            let groups: Option<Vec<String>> = connection.query_row(sql, [user], read).optional()?;
            Ok::<_, rusqlite::Error>(groups.unwrap_or_default())
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
        let (user, limits) = (user.to_owned(), limits.to_vec());
        self.write(move |connection| {
            for (index, limit) in limits.iter().enumerate() {
                if sum_since(connection, &user, limit.first_day)?.calls >= limit.calls_max {
                    return Ok(Some(index));
                }
            }
            add_in(connection, &user, day, UserUsage::one_call()).map(|()| None)
        })
        .await
    }

    async fn add_usage(&self, user: &str, day: u64, used: UserUsage) -> Result<(), StoreError> {
        check_user(user)?;
        let user = user.to_owned();
        self.write(move |connection| add_in(connection, &user, day, used)).await
    }

    async fn usage_since(&self, user: &str, first_day: u64) -> Result<UserUsage, StoreError> {
        let user = user.to_owned();
        self.read(move |connection| sum_since(connection, &user, first_day)).await
    }
}

fn add_in(connection: &Connection, user: &str, day: u64, used: UserUsage) -> rusqlite::Result<()> {
    let oldest = to_sql_integer(day.saturating_sub(USAGE_DAYS_MAX));
    connection
        .execute("DELETE FROM user_usage WHERE user = ?1 AND day < ?2", params![user, oldest])?;
    let before = day_usage(connection, user, day)?;
    let UserUsage { calls, tokens, micro_usd } = before.plus(used);
    let [day, calls, tokens, micro_usd] = [day, calls, tokens, micro_usd].map(to_sql_integer);
    let sql = "INSERT OR REPLACE INTO user_usage (user, day, calls, tokens, micro_usd)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![user, day, calls, tokens, micro_usd]).map(drop)
}

fn day_usage(connection: &Connection, user: &str, day: u64) -> rusqlite::Result<UserUsage> {
    let sql = "SELECT * FROM user_usage WHERE user = ?1 AND day = ?2";
    let found = connection.query_row(sql, params![user, to_sql_integer(day)], read_usage);
    found.optional().map(Option::unwrap_or_default)
}

fn sum_since(connection: &Connection, user: &str, first_day: u64) -> rusqlite::Result<UserUsage> {
    let sql = "SELECT * FROM user_usage WHERE user = ?1 AND day >= ?2";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query_map(params![user, to_sql_integer(first_day)], read_usage)?;
    rows.try_fold(UserUsage::default(), |total, used| Ok(total.plus(used?)))
}

fn read_usage(row: &rusqlite::Row<'_>) -> rusqlite::Result<UserUsage> {
    Ok(UserUsage {
        calls: from_sql_integer(row.get("calls")?),
        tokens: from_sql_integer(row.get("tokens")?),
        micro_usd: from_sql_integer(row.get("micro_usd")?),
    })
}
