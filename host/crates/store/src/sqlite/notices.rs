//! The waiting messages in SQLite.

use std::time::Duration;

use rusqlite::{Connection, Row, params};
use sallyport_contract::{
    async_trait,
    services::{NOTICE_BYTES_MAX, NoticeAudience, PluginNotice},
};
use serde::{Deserialize, Serialize};

use super::{
    SqliteStore,
    database::{foreign_value_error, from_sql_integer, to_sql_integer},
    presence,
    process::{self, ProcessIdentity, ProcessLiveness},
};
use crate::{
    error::StoreError,
    notices::{NoticeBatch, NoticeStore, check_notice_length, notice_bytes},
};

/// Most rows that wait for one session, and most that wait for the user. No user reads more when a
/// conversation continues.
const PENDING_ROWS_MAX: usize = 64;

/// Most rows that are handed out at the same time. The caller takes the others next.
const BATCH_ROWS_MAX: usize = 100;

/// Longest speech of merged messages, in bytes: some minutes. The text is complete.
const SPEECH_BYTES_MAX: usize = 4096;

/// Longest time for which a message is held back, in milliseconds. A message whose time is further
/// ahead is shown: the clock was put back.
const DELAY_MS_MAX: u64 = 5 * 60 * 1000;

/// How long messages stay taken if it is unknown whether the taker lives. Showing them takes less
/// than a second.
const LEASE_MS: u64 = 60_000;

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
            insert_notice(
                connection,
                &user,
                &StoredNotice { notice: notice.clone(), until_ms: None },
            )?;
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
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).min(DELAY_MS_MAX);
        let until_ms = Some(now_ms.saturating_add(after_ms));
        let (user, notice) = (user.to_owned(), notice.clone());
        self.write(move |connection| -> rusqlite::Result<bool> {
            if let Some((key, mut stored)) = find_held_notice(connection, &user, &notice, now_ms)? {
                if !can_merge(&stored.notice, &notice) {
                    return Ok(false);
                }
                append_notice(&mut stored.notice, &notice);
                replace_notice(connection, key, &stored, 1)?;
                return Ok(true);
            }
            insert_notice(connection, &user, &StoredNotice { notice: notice.clone(), until_ms })?;
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

/// A message as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredNotice {
    #[serde(flatten)]
    notice: PluginNotice,
    /// Not shown before this time, because further messages may be merged into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
}

impl StoredNotice {
    fn is_held_back(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until| until > now_ms && until - now_ms <= DELAY_MS_MAX)
    }
}

struct PendingNoticeRow {
    key: i64,
    session_id: String,
    notice: Option<StoredNotice>,
    count: u64,
    process: Option<String>,
    lease_ms: Option<u64>,
}

impl PendingNoticeRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let is_message = row.get_ref("notice")? != rusqlite::types::ValueRef::Null;
        Ok(Self {
            key: row.get("key")?,
            session_id: row.get("session_id")?,
            notice: is_message.then(|| read_stored_notice(row)).transpose()?,
            count: from_sql_integer(row.get("count")?),
            process: row.get("process")?,
            lease_ms: row.get::<_, Option<i64>>("lease_ms")?.map(from_sql_integer),
        })
    }

    /// Whether the message is due and not taken by a live process.
    fn is_available(&self, now_ms: u64) -> bool {
        if self.notice.as_ref().is_some_and(|notice| notice.is_held_back(now_ms)) {
            return false;
        }
        self.process.as_deref().is_none_or(|holder| match process::liveness_by_name(holder) {
            ProcessLiveness::Running => false,
            ProcessLiveness::Ended => true,
            ProcessLiveness::Unknown => self.lease_ms.is_none_or(|end| end <= now_ms),
        })
    }
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
    for waiting in statement.query_map(values, PendingNoticeRow::from_row)? {
        let waiting = waiting?;
        if !is_open_elsewhere(&waiting.session_id) && waiting.is_available(now_ms) {
            batch.keys.push(waiting.key);
            match waiting.notice {
                Some(stored) => batch.notices.push(stored.notice),
                None => batch.discarded_count = batch.discarded_count.saturating_add(waiting.count),
            }
        }
        if batch.keys.len() == BATCH_ROWS_MAX {
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
        .execute(sql, (user, &notice.session_id, audience_name(notice.audience), to_json(stored)))
}

/// Stores a message that others were merged into.
fn replace_notice(
    connection: &Connection,
    key: i64,
    stored: &StoredNotice,
    added: i64,
) -> rusqlite::Result<usize> {
    let sql = "UPDATE notice SET notice = ?2, count = count + ?3 WHERE key = ?1";
    connection.execute(sql, (key, to_json(stored), added))
}

fn to_json(stored: &StoredNotice) -> String {
    serde_json::to_string(stored).expect("a notice is plain data")
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

/// Whether two messages are of one plugin and short enough to be merged.
fn can_merge(one: &PluginNotice, other: &PluginNotice) -> bool {
    one.plugin == other.plugin && notice_bytes(one) + notice_bytes(other) + 2 <= NOTICE_BYTES_MAX
}

/// Appends a message to another one, on a line of its own.
fn append_notice(to: &mut PluginNotice, notice: &PluginNotice) {
    let speech = match (&to.speech, &notice.speech) {
        (Some(one), Some(other)) if one.len() + other.len() < SPEECH_BYTES_MAX => {
            Some(format!("{one} {other}"))
        }
        (Some(one), _) => Some(one.clone()),
        (None, other) => other.clone(),
    };
    (to.speech, to.late) = (speech, to.late || notice.late);
    to.text.push('\n');
    to.text.push_str(&notice.text);
}

/// Merges the two oldest messages of one plugin that are not taken, if too many wait for the same
/// audience. If none can be merged, the two oldest rows become a count.
fn merge_oldest_notices(
    connection: &Connection,
    user: &str,
    notice: &PluginNotice,
) -> rusqlite::Result<()> {
    let sql = "SELECT key, count, notice FROM notice
        WHERE user = ?1 AND (session_id = ?2 OR ?2 IS NULL) AND audience = ?3 AND process IS NULL
        ORDER BY key";
    // Messages to the user are counted across sessions: each may come from a new session.
    let session_id = match notice.audience {
        NoticeAudience::Conversation => Some(&notice.session_id),
        NoticeAudience::User => None,
    };
    let values = (user, session_id, audience_name(notice.audience));
    let rows = MergeCandidateRow::query_rows(connection, sql, values)?;
    if rows.len() <= PENDING_ROWS_MAX || merge_first_pair(connection, &rows)? {
        return Ok(());
    }
    let [first, second, ..] = &rows[..] else { return Ok(()) };
    let sql = "UPDATE notice SET notice = NULL, count = ?2 WHERE key = ?1";
    connection.execute(sql, (first.key, first.count.saturating_add(second.count)))?;
    remove_notice(connection, second.key)
}

/// A row that is not taken.
struct MergeCandidateRow {
    key: i64,
    count: i64,
    notice: Option<StoredNotice>,
}

impl MergeCandidateRow {
    fn query_rows(
        connection: &Connection,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> rusqlite::Result<Vec<Self>> {
        let read = |row: &Row<'_>| {
            let is_message = row.get_ref("notice")? != rusqlite::types::ValueRef::Null;
            let stored = is_message.then(|| read_stored_notice(row)).transpose()?;
            Ok(Self { key: row.get("key")?, count: row.get("count")?, notice: stored })
        };
        connection.prepare(sql)?.query_map(values, read)?.collect()
    }
}

/// Merges the first two messages of one plugin that fit into one. Returns whether there were two.
fn merge_first_pair(connection: &Connection, rows: &[MergeCandidateRow]) -> rusqlite::Result<bool> {
    let messages = || rows.iter().filter_map(|row| Some((row, row.notice.as_ref()?)));
    for (at, (first, stored)) in messages().enumerate() {
        let mut later = messages().skip(at + 1);
        let second = later.find(|(_, other)| can_merge(&stored.notice, &other.notice));
        let Some((second, other)) = second else { continue };
        let mut both = stored.clone();
        append_notice(&mut both.notice, &other.notice);
        // The merged message is only held back if both messages are.
        both.until_ms = both.until_ms.and(other.until_ms);
        replace_notice(connection, first.key, &both, second.count)?;
        remove_notice(connection, second.key)?;
        return Ok(true);
    }
    Ok(false)
}

fn remove_notice(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM notice WHERE key = ?1", [key]).map(drop)
}

fn audience_name(audience: NoticeAudience) -> &'static str {
    match audience {
        NoticeAudience::Conversation => "conversation",
        NoticeAudience::User => "user",
    }
}
