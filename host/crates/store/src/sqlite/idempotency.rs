//! Idempotency keys in SQLite.
//!
//! A key survives the end of the process. A power failure may lose one whose request had no effect
//! yet: the decision about each call that may act is on the disk before the call, and with it every
//! commit before.

use rusqlite::{Connection, OptionalExtension, Row, params};
use sallyport_contract::async_trait;

use super::{SqliteStore, database::foreign_value_error, transaction_error::TransactionError};
use crate::{
    error::StoreError,
    idempotency::{
        IdempotencyKey, IdempotencyStore, KEY_AGE_MS_MAX, KEYS_MAX, KEYS_OF_USER_MAX, KeyState,
        KeyedReply, KnownKey,
    },
    process::{self, ProcessIdentity, ProcessLiveness},
    sql_integer::to_sql_integer,
};

/// The table. A key without a status has not ended, and one without a process is cut off.
pub(super) const TABLE: &str = "
    CREATE TABLE idempotency_key (
        user TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        process TEXT,
        begun_ms INTEGER NOT NULL,
        status INTEGER,
        body BLOB,
        PRIMARY KEY (user, key)
    ) STRICT, WITHOUT ROWID;
";

/// Selects a key that this process has begun and not ended.
const IS_BEGUN_HERE: &str = "user = ?1 AND key = ?2 AND process = ?3 AND status IS NULL";

#[async_trait]
impl IdempotencyStore for SqliteStore {
    async fn begin_key(
        &self,
        key: &IdempotencyKey,
        fingerprint: [u8; 32],
        now_ms: u64,
    ) -> Result<Option<KnownKey>, StoreError> {
        key.check_lengths()?;
        let key = key.clone();
        self.write(move |connection| begin_in(connection, &key, fingerprint, now_ms)).await
    }

    async fn find_key(
        &self,
        key: &IdempotencyKey,
        now_ms: u64,
    ) -> Result<Option<KnownKey>, StoreError> {
        let key = key.clone();
        self.read(move |connection| find_in(connection, &key, now_ms)).await
    }

    async fn end_key(&self, key: &IdempotencyKey, reply: KeyedReply) -> Result<(), StoreError> {
        let (key, KeyedReply { status, body }) = (key.clone(), reply.bounded());
        let sql =
            format!("UPDATE idempotency_key SET status = ?4, body = ?5 WHERE {IS_BEGUN_HERE}");
        self.write(move |connection| {
            connection.execute(&sql, params![key.user, key.key, own_name(), status, body])
        })
        .await
        .map(drop)
    }

    async fn release_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        let key = key.clone();
        let sql = format!("DELETE FROM idempotency_key WHERE {IS_BEGUN_HERE}");
        self.write(move |connection| {
            connection.execute(&sql, params![key.user, key.key, own_name()])
        })
        .await
        .map(drop)
    }

    async fn cut_off_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        let key = key.clone();
        let sql = format!("UPDATE idempotency_key SET process = NULL WHERE {IS_BEGUN_HERE}");
        self.write(move |connection| {
            connection.execute(&sql, params![key.user, key.key, own_name()])
        })
        .await
        .map(drop)
    }
}

fn begin_in(
    connection: &Connection,
    key: &IdempotencyKey,
    fingerprint: [u8; 32],
    now_ms: u64,
) -> Result<Option<KnownKey>, TransactionError> {
    connection
        .execute("DELETE FROM idempotency_key WHERE begun_ms <= ?1", [oldest_valid_ms(now_ms)])?;
    if let Some(known) = find_in(connection, key, now_ms)? {
        return Ok(Some(known));
    }
    make_room(connection, &key.user)?;
    let sql = "INSERT INTO idempotency_key (user, key, fingerprint, process, begun_ms)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let begun_ms = to_sql_integer(now_ms);
    connection.execute(sql, params![key.user, key.key, fingerprint, own_name(), begun_ms])?;
    Ok(None)
}

fn find_in(
    connection: &Connection,
    key: &IdempotencyKey,
    now_ms: u64,
) -> rusqlite::Result<Option<KnownKey>> {
    let sql = "SELECT * FROM idempotency_key WHERE user = ?1 AND key = ?2 AND begun_ms > ?3";
    let values = params![key.user, key.key, oldest_valid_ms(now_ms)];
    connection.query_row(sql, values, read_key).optional()
}

/// Removes the oldest key that is not running, if there are too many of the user or of all.
fn make_room(connection: &Connection, user: &str) -> Result<(), TransactionError> {
    let count = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.query_row(sql, values, |row| row.get::<_, i64>(0))
    };
    let own = count("SELECT count(*) FROM idempotency_key WHERE user = ?1", &[&user])?;
    let total = count("SELECT count(*) FROM idempotency_key", &[])?;
    let (own_max, total_max) = (KEYS_OF_USER_MAX as i64, KEYS_MAX as i64);
    if own < own_max && total < total_max {
        return Ok(());
    }
    let of_user = (own >= own_max).then_some(user);
    match find_oldest_ended(connection, of_user)? {
        Some((user, key)) => Ok(remove(connection, &user, &key)?),
        None => Err(StoreError::TooManyKeys { count_max: KEYS_OF_USER_MAX }.into()),
    }
}

/// The oldest key whose request does not run: of a user, or of all.
fn find_oldest_ended(
    connection: &Connection,
    user: Option<&str>,
) -> rusqlite::Result<Option<(String, String)>> {
    let sql = "SELECT user, key, status, process FROM idempotency_key
        WHERE ?1 IS NULL OR user = ?1 ORDER BY begun_ms";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([user])?;
    while let Some(row) = rows.next()? {
        let status: Option<i64> = row.get("status")?;
        if status.is_some() || !is_running(row.get("process")?) {
            return Ok(Some((row.get("user")?, row.get("key")?)));
        }
    }
    Ok(None)
}

fn remove(connection: &Connection, user: &str, key: &str) -> rusqlite::Result<()> {
    let sql = "DELETE FROM idempotency_key WHERE user = ?1 AND key = ?2";
    connection.execute(sql, params![user, key]).map(drop)
}

fn read_key(row: &Row<'_>) -> rusqlite::Result<KnownKey> {
    let (status, process): (Option<u16>, Option<String>) =
        (row.get("status")?, row.get("process")?);
    let state = match status {
        Some(status) => KeyState::Done(KeyedReply { status, body: row.get("body")? }),
        None if process.as_ref() == Some(&own_name()) => KeyState::BegunHere,
        None if is_running(process) => KeyState::Running,
        None => KeyState::CutOff,
    };
    let fingerprint: Vec<u8> = row.get("fingerprint")?;
    let fingerprint = fingerprint
        .try_into()
        .map_err(|_| foreign_value_error(row, "fingerprint", "it has another length"))?;
    Ok(KnownKey { fingerprint, state })
}

fn own_name() -> String {
    ProcessIdentity::current_process().to_string()
}

fn is_running(process: Option<String>) -> bool {
    process.is_some_and(|name| process::liveness_by_name(&name) != ProcessLiveness::Ended)
}

fn oldest_valid_ms(now_ms: u64) -> i64 {
    to_sql_integer(now_ms.saturating_sub(KEY_AGE_MS_MAX))
}
