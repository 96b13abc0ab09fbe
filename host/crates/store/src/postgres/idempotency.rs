//! Idempotency keys in PostgreSQL.
//!
//! Of several machines that begin a key at the same time, one inserts its row, and the others find
//! it. The key of a machine that dies is cut off when its lease ends: no other machine does its
//! request again, because nobody knows what came of it.

use sallyport_contract::async_trait;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    error::PgError,
    holders::{self, LiveHolders},
    transaction::{Tx, Values},
    values::{Columns, escape, hash_key},
};
use crate::{
    error::StoreError,
    idempotency::{
        IdempotencyKey, IdempotencyStore, KEY_AGE_MS_MAX, KEYS_MAX, KEYS_OF_USER_MAX, KeyState,
        KeyedReply, KnownKey,
    },
    sql_integer::to_sql_integer,
};

/// The table. `hash` is that of the user and the key, which may be longer than an index takes. A key
/// without a status has not ended, and one without a process is cut off.
pub(super) const TABLE: &str = "
    CREATE TABLE idempotency_key (
        hash BYTEA PRIMARY KEY,
        user_id TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint BYTEA NOT NULL,
        process TEXT,
        begun_ms BIGINT NOT NULL,
        status BIGINT,
        body BYTEA
    );
    CREATE INDEX idempotency_key_user ON idempotency_key USING hash (user_id);
    CREATE INDEX idempotency_key_begun ON idempotency_key (begun_ms);
";

/// Selects a key that this process has begun and not ended.
const IS_BEGUN_HERE: &str = "hash = $1 AND process = $2 AND status IS NULL";

#[async_trait]
impl IdempotencyStore for PostgresStore {
    async fn begin_key(
        &self,
        key: &IdempotencyKey,
        fingerprint: [u8; 32],
        now_ms: u64,
    ) -> Result<Option<KnownKey>, StoreError> {
        key.check_lengths()?;
        let args = (key.clone(), fingerprint, self.hold(), now_ms);
        self.write(args, |tx, (key, fingerprint, holder, now_ms)| {
            Box::pin(begin_in(tx, key, fingerprint, holder, *now_ms))
        })
        .await
    }

    async fn find_key(
        &self,
        key: &IdempotencyKey,
        now_ms: u64,
    ) -> Result<Option<KnownKey>, StoreError> {
        self.read((key.clone(), now_ms), |tx, (key, now_ms)| {
            Box::pin(async move { find_in(tx, key, *now_ms, &LiveHolders::read(tx).await?).await })
        })
        .await
    }

    async fn end_key(&self, key: &IdempotencyKey, reply: KeyedReply) -> Result<(), StoreError> {
        self.write((hash_of(key), reply.bounded()), |tx, (hash, KeyedReply { status, body })| {
            Box::pin(async move {
                let sql = format!(
                    "UPDATE idempotency_key SET status = $3, body = $4 WHERE {IS_BEGUN_HERE}"
                );
                let values: Values<'_> = &[hash, &holders::own_name(), &i64::from(*status), body];
                tx.execute(&sql, values).await.map(drop)
            })
        })
        .await
    }

    async fn release_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        self.write(hash_of(key), |tx, hash| {
            Box::pin(async move {
                let sql = format!("DELETE FROM idempotency_key WHERE {IS_BEGUN_HERE}");
                tx.execute(&sql, &[hash, &holders::own_name()]).await.map(drop)
            })
        })
        .await
    }

    async fn cut_off_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        self.write(hash_of(key), |tx, hash| {
            Box::pin(async move {
                let sql =
                    format!("UPDATE idempotency_key SET process = NULL WHERE {IS_BEGUN_HERE}");
                tx.execute(&sql, &[hash, &holders::own_name()]).await.map(drop)
            })
        })
        .await
    }
}

async fn begin_in(
    tx: &Tx<'_>,
    key: &IdempotencyKey,
    fingerprint: &[u8; 32],
    holder: &str,
    now_ms: u64,
) -> Result<Option<KnownKey>, PgError> {
    // Or two machines that begin at once would both find nothing, and count one less than there are.
    tx.lock("idempotency keys of a user", &key.user).await?;
    let sql = "DELETE FROM idempotency_key WHERE begun_ms <= $1";
    tx.execute(sql, &[&oldest_valid_ms(now_ms)]).await?;
    let live = LiveHolders::read(tx).await?;
    if let Some(known) = find_in(tx, key, now_ms, &live).await? {
        return Ok(Some(known));
    }
    make_room(tx, &key.user, &live).await?;
    holders::renew(tx).await?;
    let sql = "INSERT INTO idempotency_key (hash, user_id, key, fingerprint, process, begun_ms)
        VALUES ($1, $2, $3, $4, $5, $6)";
    let (hash, texts) = (hash_of(key), [&key.user, &key.key].map(|text| escape(text)));
    let ([user, key], fingerprint) = (&texts, fingerprint.as_slice());
    let begun_ms = to_sql_integer(now_ms);
    tx.execute(sql, &[&hash, user, key, &fingerprint, &holder, &begun_ms]).await?;
    Ok(None)
}

async fn find_in(
    tx: &Tx<'_>,
    key: &IdempotencyKey,
    now_ms: u64,
    live: &LiveHolders,
) -> Result<Option<KnownKey>, PgError> {
    let sql = "SELECT fingerprint, process, status, body FROM idempotency_key
        WHERE hash = $1 AND begun_ms > $2";
    let row = tx.row(sql, &[&hash_of(key), &oldest_valid_ms(now_ms)]).await?;
    row.map(|row| read_key(&row, live)).transpose()
}

/// Removes the oldest keys that are not running, if there are too many of the user or of all.
async fn make_room(tx: &Tx<'_>, user: &str, live: &LiveHolders) -> Result<(), PgError> {
    let sql = "SELECT count(*) FROM idempotency_key WHERE user_id = $1";
    let own = tx.count(sql, &[&escape(user)]).await? as usize;
    if own >= KEYS_OF_USER_MAX {
        return remove_ended(tx, Some(user), own + 1 - KEYS_OF_USER_MAX, live).await;
    }
    let sql = "SELECT count(*) FROM idempotency_key";
    if (tx.count(sql, &[]).await? as usize) < KEYS_MAX {
        return Ok(());
    }
    // Only a full table makes users wait for each other.
    tx.lock("idempotency keys", "").await?;
    let total = tx.count(sql, &[]).await? as usize;
    remove_ended(tx, None, (total + 1).saturating_sub(KEYS_MAX), live).await
}

/// Removes the oldest `count` keys whose requests do not run: of a user, or of all.
///
/// # Errors
///
/// Fewer of them have ended.
async fn remove_ended(
    tx: &Tx<'_>,
    user: Option<&str>,
    count: usize,
    live: &LiveHolders,
) -> Result<(), PgError> {
    let sql = "SELECT hash, status, process FROM idempotency_key
        WHERE $1::text IS NULL OR user_id = $1 ORDER BY begun_ms";
    let mut ended: Vec<Vec<u8>> = Vec::new();
    for row in tx.rows(sql, &[&user.map(escape)]).await? {
        if ended.len() < count
            && (row.number_option("status")?.is_some() || !is_running(&row, live)?)
        {
            ended.push(row.value("hash")?);
        }
    }
    if ended.len() < count {
        return Err(StoreError::TooManyKeys { count_max: KEYS_OF_USER_MAX }.into());
    }
    let sql = "DELETE FROM idempotency_key WHERE hash = ANY($1)";
    tx.execute(sql, &[&ended]).await.map(drop)
}

fn read_key(row: &Row, live: &LiveHolders) -> Result<KnownKey, PgError> {
    let foreign = |what: &str| PgError::Foreign(format!("{what} of an idempotency key"));
    let state = match row.number_option("status")? {
        Some(status) => {
            let status = u16::try_from(status).map_err(|_| foreign("the status"))?;
            KeyState::Done(KeyedReply { status, body: row.value("body")? })
        }
        None if row.text_option("process")?.as_ref() == Some(&holders::own_name()) => {
            KeyState::BegunHere
        }
        None if is_running(row, live)? => KeyState::Running,
        None => KeyState::CutOff,
    };
    let fingerprint: Vec<u8> = row.value("fingerprint")?;
    let fingerprint = fingerprint.try_into().map_err(|_| foreign("the fingerprint"))?;
    Ok(KnownKey { fingerprint, state })
}

fn is_running(row: &Row, live: &LiveHolders) -> Result<bool, PgError> {
    Ok(row.text_option("process")?.is_some_and(|process| !live.has_ended(&process)))
}

fn hash_of(key: &IdempotencyKey) -> Vec<u8> {
    hash_key(&[&key.user, &key.key])
}

fn oldest_valid_ms(now_ms: u64) -> i64 {
    to_sql_integer(now_ms.saturating_sub(KEY_AGE_MS_MAX))
}
