//! The waiting messages in SQLite.

use std::time::Duration;

use rusqlite::{Connection, Row, params};
use sallyport_contract::{
    async_trait,
    services::{NoticeAudience, PluginNotice},
};

use super::{SqliteStore, database::foreign_value_error, presence};
use crate::{
    error::StoreError,
    notices::{
        NoticeBatch, NoticeStore, check_notice_length,
        pending::{self, LEASE_MS, Merge, PendingNotice, StoredNotice, audience_name},
    },
    process::{self, ProcessIdentity},
    sql_integer::{from_sql_integer, to_sql_integer},
};

/// The table of messages. For messages that are only counted, `notice` is NULL and `count` is their
/// number.
pub(super) const TABLE: &str = "
    CREATE TABLE notice (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        user TEXT NOT NULL,
        session_id TEXT NOT NULL,
        audience TEXT NOT NULL,
        notice TEXT,
        count INTEGER NOT NULL,
        process TEXT,
        lease_ms INTEGER
    ) STRICT;
    CREATE INDEX notice_user ON notice (user, session_id, audience);
";

#[async_trait]
impl NoticeStore for SqliteStore {
    async fn store_notice(&self, user: &str, notice: &PluginNotice) -> Result<(), StoreError> {
        check_notice_length(notice)?;
        let (user, notice) = (user.to_owned(), notice.clone());
        self.write(move |connection| {
            insert_notice(connection, &user, &StoredNotice::due(&notice))?;
            merge_oldest_notices(connection, &user, &notice)
        })
        .await
    }

    async fn store_or_merge(
        &self,
        user: &str,
        notice: &PluginNotice,
        now_ms: u64,
        after: Duration,
    ) -> Result<bool, StoreError> {
        check_notice_length(notice)?;
        let held_back = StoredNotice::held_back(notice, now_ms, after);
        let (user, notice) = (user.to_owned(), notice.clone());
        self.write(move |connection| -> rusqlite::Result<bool> {
            if let Some((key, mut stored)) = find_held_notice(connection, &user, &notice, now_ms)? {
                let fits = stored.append(&notice);
                if fits {
                    replace_notice(connection, key, &stored, 1)?;
                }
                return Ok(fits);
            }
            insert_notice(connection, &user, &held_back)?;
            merge_oldest_notices(connection, &user, &notice)?;
            Ok(true)
        })
        .await
    }

    async fn take_batch(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<NoticeBatch, StoreError> {
        let (user, session_id) = (user.to_owned(), session_id.to_owned());
        self.write(move |connection| take_notices(connection, &user, &session_id, now_ms)).await
    }

    async fn confirm_shown(&self, batch: &NoticeBatch) -> Result<(), StoreError> {
        execute_for_each(self, batch, "DELETE FROM notice WHERE key = ?1").await
    }

    async fn release_batch(&self, batch: &NoticeBatch) -> Result<(), StoreError> {
        let sql = "UPDATE notice SET process = NULL, lease_ms = NULL WHERE key = ?1";
        execute_for_each(self, batch, sql).await
    }
}

async fn execute_for_each(
    store: &SqliteStore,
    batch: &NoticeBatch,
    sql: &'static str,
) -> Result<(), StoreError> {
    if batch.is_empty() {
        return Ok(());
    }
    let keys = batch.keys.clone();
    store
        .write(move |connection| {
            let mut statement = connection.prepare(sql)?;
            keys.iter().try_for_each(|key| statement.execute([key]).map(drop))
        })
        .await
}

/// Removes the messages that only this session, which is gone, would have shown.
pub(super) fn forget_session_notices(
    connection: &Connection,
    session_id: &str,
) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM notice WHERE session_id = ?1 AND audience = ?2";
    connection.execute(sql, (session_id, audience_name(NoticeAudience::Conversation)))
}

fn read_pending(row: &Row<'_>) -> rusqlite::Result<PendingNotice> {
    let is_message = row.get_ref("notice")? != rusqlite::types::ValueRef::Null;
    Ok(PendingNotice {
        key: row.get("key")?,
        session_id: row.get("session_id")?,
        notice: is_message.then(|| read_stored_notice(row)).transpose()?,
        count: from_sql_integer(row.get("count")?),
        process: row.get("process")?,
        lease_ms: row.get::<_, Option<i64>>("lease_ms")?.map(from_sql_integer),
    })
}

fn take_notices(
    connection: &Connection,
    user: &str,
    session_id: &str,
    now_ms: u64,
) -> rusqlite::Result<NoticeBatch> {
    let open = presence::list_open_sessions(connection, now_ms)?;
    let is_open_elsewhere =
        |other: &str| other != session_id && open.iter().any(|open| open.session_id == other);
    let sql = "SELECT key, session_id, notice, count, process, lease_ms FROM notice
        WHERE user = ?1 AND (session_id = ?2 OR audience = ?3) ORDER BY key";
    let values = (user, session_id, audience_name(NoticeAudience::User));
    let mut statement = connection.prepare(sql)?;
    let mut batch = NoticeBatch::default();
    for waiting in statement.query_map(values, read_pending)? {
        let waiting = waiting?;
        let is_available = waiting.is_available(now_ms, process::liveness_by_name);
        if !is_open_elsewhere(&waiting.session_id) && is_available {
            batch.push(waiting);
        }
        if batch.is_full() {
            break;
        }
    }
    lease_notices(connection, &batch.keys, now_ms)?;
    Ok(batch)
}

fn lease_notices(connection: &Connection, keys: &[i64], now_ms: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE notice SET process = ?2, lease_ms = ?3 WHERE key = ?1";
    let mut statement = connection.prepare(sql)?;
    let holder = ProcessIdentity::current_process().to_string();
    let until_ms = to_sql_integer(now_ms.saturating_add(LEASE_MS));
    for key in keys {
        statement.execute(params![key, holder, until_ms])?;
    }
    Ok(())
}

fn insert_notice(
    connection: &Connection,
    user: &str,
    stored: &StoredNotice,
) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO notice (user, session_id, audience, notice, count)
        VALUES (?1, ?2, ?3, ?4, 1)";
    let notice = &stored.notice;
    connection
        .execute(sql, (user, &notice.session_id, audience_name(notice.audience), stored.to_json()))
}

/// Stores a message that others were merged into.
fn replace_notice(
    connection: &Connection,
    key: i64,
    stored: &StoredNotice,
    added: u64,
) -> rusqlite::Result<usize> {
    let sql = "UPDATE notice SET notice = ?2, count = count + ?3 WHERE key = ?1";
    connection.execute(sql, (key, stored.to_json(), to_sql_integer(added)))
}

/// Finds the held message that a new one can be merged into.
fn find_held_notice(
    connection: &Connection,
    user: &str,
    notice: &PluginNotice,
    now_ms: u64,
) -> rusqlite::Result<Option<(i64, StoredNotice)>> {
    let sql = "SELECT key, notice FROM notice
        WHERE user = ?1 AND session_id = ?2 AND audience = ?3 AND process IS NULL
            AND notice IS NOT NULL
        ORDER BY key DESC";
    let values = (user, &notice.session_id, audience_name(notice.audience));
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let stored = read_stored_notice(row)?;
        if stored.notice.plugin == notice.plugin && stored.is_held_back(now_ms) {
            return Ok(Some((row.get("key")?, stored)));
        }
    }
    Ok(None)
}

fn read_stored_notice(row: &Row<'_>) -> rusqlite::Result<StoredNotice> {
    let text: String = row.get("notice")?;
    serde_json::from_str(&text).map_err(|error| foreign_value_error(row, "notice", error))
}

/// Merges rows if too many wait for the same audience.
fn merge_oldest_notices(
    connection: &Connection,
    user: &str,
    notice: &PluginNotice,
) -> rusqlite::Result<()> {
    let sql = "SELECT key, session_id, count, notice, process, lease_ms FROM notice
        WHERE user = ?1 AND (session_id = ?2 OR ?2 IS NULL) AND audience = ?3 AND process IS NULL
        ORDER BY key";
    let values = (user, pending::counted_session(notice), audience_name(notice.audience));
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(values, read_pending)?.collect::<rusqlite::Result<Vec<_>>>()?;
    match pending::choose_merge(&rows) {
        None => Ok(()),
        Some(Merge::Messages { first, second, merged, added }) => {
            replace_notice(connection, first, &merged, added)?;
            remove_notice(connection, second)
        }
        Some(Merge::Count { first, second, count }) => {
            let sql = "UPDATE notice SET notice = NULL, count = ?2 WHERE key = ?1";
            connection.execute(sql, (first, to_sql_integer(count)))?;
            remove_notice(connection, second)
        }
    }
}

fn remove_notice(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM notice WHERE key = ?1", [key]).map(drop)
}
