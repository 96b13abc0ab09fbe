//! Notices: messages to the user that wait until a conversation can show them.
//!
//! A conversation takes messages, shows them, and then confirms them. Messages that were taken are
//! not handed out again while the taker lives. If the taker's process ends without a confirmation,
//! it is unknown whether the messages were shown, so they are handed out again: a message may be
//! shown twice, but is never lost.
//!
//! The number of waiting rows is limited for each session, and for the messages to the user across
//! all sessions. Beyond the limit, the oldest messages of one plugin are merged into one, because
//! waiting messages must not be lost. If nothing can be merged within the longest length of a
//! message, the oldest rows become one row that only counts them. A message can also be gathered
//! from the start, with a time before which it is not shown.

use std::time::Duration;

use rusqlite::{Connection, Row, params};
use sallyport_contract::services::{NOTICE_BYTES_MAX, NoticeAudience, PluginNotice};
use serde::{Deserialize, Serialize};

use crate::{
    database::{foreign, signed, unsigned},
    error::StoreError,
    presence,
    process::{self, Life, Process},
    store::Store,
};

/// Most rows that wait for one session, and most that wait for the user. No user reads more when a
/// conversation continues.
const WAITING_MAX: usize = 64;

/// Most rows that are handed out at the same time. The caller takes the others next.
const TAKEN_MAX: usize = 100;

/// Longest speech of merged messages, in bytes: some minutes. The text is complete.
const SPEECH_BYTES_MAX: usize = 4096;

/// Longest time for which a message is held back, in milliseconds. A message whose time is further
/// ahead is shown: the clock was put back.
const HELD_MS_MAX: u64 = 5 * 60 * 1000;

/// How long messages stay taken if it is unknown whether the taker lives. Showing them takes less
/// than a second.
const LEASE_MS: u64 = 60_000;

/// The table of messages. For messages that are only counted, `notice` is NULL and `count` is their
/// number.
pub(crate) const TABLE: &str = "
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

/// The waiting messages.
#[derive(Debug, Clone, Copy)]
pub struct KeptNotices<'s> {
    store: &'s Store,
}

/// Messages that are about to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The messages, oldest first.
    pub notices: Vec<PluginNotice>,
    /// How many older messages are only counted and no longer stored.
    pub more: u64,
    keys: Vec<i64>,
}

impl Taken {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl<'s> KeptNotices<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Stores a message for a user.
    ///
    /// # Errors
    ///
    /// The message is too long, or the database cannot be written.
    pub fn keep(self, user: &str, notice: &PluginNotice) -> Result<(), StoreError> {
        check_length(notice)?;
        self.store.write(|connection| {
            insert(connection, user, &HeldNotice { notice: notice.clone(), until_ms: None })?;
            Ok(merge_oldest(connection, user, notice)?)
        })
    }

    /// Stores a message for a user that is shown `after` some time, at most five minutes. Until
    /// then, messages of the same plugin for the same session and audience are merged into one.
    ///
    /// Returns `false` if the merged message would be too long. Nothing is stored then.
    ///
    /// # Errors
    ///
    /// The message is too long, or the database cannot be written.
    pub fn gather(
        self,
        user: &str,
        notice: &PluginNotice,
        now_ms: u64,
        after: Duration,
    ) -> Result<bool, StoreError> {
        check_length(notice)?;
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).min(HELD_MS_MAX);
        let until_ms = Some(now_ms.saturating_add(after_ms));
        self.store.write(|connection| {
            if let Some((key, mut held)) = held(connection, user, notice, now_ms)? {
                if !fits(&held.notice, notice) {
                    return Ok(false);
                }
                append(&mut held.notice, notice);
                replace(connection, key, &held, 1)?;
                return Ok(true);
            }
            insert(connection, user, &HeldNotice { notice: notice.clone(), until_ms })?;
            merge_oldest(connection, user, notice)?;
            Ok(true)
        })
    }

    /// Takes the messages that a session of the user should show: its own, and those to the user
    /// that no other open session shows. The caller must confirm them or give them back.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn take(self, user: &str, session_id: &str, now_ms: u64) -> Result<Taken, StoreError> {
        let place = Place { user, session_id, now_ms };
        self.store.write(|connection| Ok(take(connection, &place, Process::own())?))
    }

    /// Removes messages that were shown.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn confirm(self, taken: &Taken) -> Result<(), StoreError> {
        self.each(taken, "DELETE FROM notice WHERE key = ?1")
    }

    /// Gives back messages that were not shown, so that they are handed out again.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn give_back(self, taken: &Taken) -> Result<(), StoreError> {
        self.each(taken, "UPDATE notice SET process = NULL, lease_ms = NULL WHERE key = ?1")
    }

    fn each(self, taken: &Taken, sql: &str) -> Result<(), StoreError> {
        if taken.is_empty() {
            return Ok(());
        }
        self.store.write(|connection| {
            let mut statement = connection.prepare(sql)?;
            for key in &taken.keys {
                statement.execute([key])?;
            }
            Ok(())
        })
    }
}

/// Removes the messages that only this session, which is gone, would have shown.
pub(crate) fn forget(connection: &Connection, session_id: &str) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM notice WHERE session_id = ?1 AND audience = ?2";
    connection.execute(sql, (session_id, word(NoticeAudience::Conversation)))
}

/// The place where messages are about to be shown.
pub(crate) struct Place<'p> {
    pub(crate) user: &'p str,
    pub(crate) session_id: &'p str,
    pub(crate) now_ms: u64,
}

/// A message as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HeldNotice {
    #[serde(flatten)]
    notice: PluginNotice,
    /// Not shown before this time, because further messages may be merged into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
}

impl HeldNotice {
    fn is_held(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until| until > now_ms && until - now_ms <= HELD_MS_MAX)
    }
}

struct Waiting {
    key: i64,
    session_id: String,
    notice: Option<HeldNotice>,
    count: u64,
    process: Option<String>,
    lease_ms: Option<u64>,
}

impl Waiting {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let is_message = row.get_ref("notice")? != rusqlite::types::ValueRef::Null;
        Ok(Self {
            key: row.get("key")?,
            session_id: row.get("session_id")?,
            notice: is_message.then(|| read_held(row)).transpose()?,
            count: unsigned(row.get("count")?),
            process: row.get("process")?,
            lease_ms: row.get::<_, Option<i64>>("lease_ms")?.map(unsigned),
        })
    }

    /// Whether the message is due and not taken by a live process.
    fn is_free(&self, now_ms: u64) -> bool {
        if self.notice.as_ref().is_some_and(|notice| notice.is_held(now_ms)) {
            return false;
        }
        self.process.as_deref().is_none_or(|holder| match process::life(holder) {
            Life::Lives => false,
            Life::Gone => true,
            Life::Unknown => self.lease_ms.is_none_or(|end| end <= now_ms),
        })
    }
}

pub(crate) fn take(
    connection: &Connection,
    place: &Place<'_>,
    holder: &Process,
) -> rusqlite::Result<Taken> {
    let open = presence::list(connection, place.now_ms)?;
    let is_open_elsewhere = |session_id: &str| {
        session_id != place.session_id && open.iter().any(|open| open.session_id == session_id)
    };
    let mut taken = Taken::default();
    for waiting in waiting(connection, place)? {
        if !is_open_elsewhere(&waiting.session_id) && waiting.is_free(place.now_ms) {
            taken.keys.push(waiting.key);
            match waiting.notice {
                Some(held) => taken.notices.push(held.notice),
                None => taken.more = taken.more.saturating_add(waiting.count),
            }
        }
        if taken.keys.len() == TAKEN_MAX {
            break;
        }
    }
    hold(connection, &taken.keys, holder, place.now_ms)?;
    Ok(taken)
}

fn waiting(connection: &Connection, place: &Place<'_>) -> rusqlite::Result<Vec<Waiting>> {
    let sql = "SELECT key, session_id, notice, count, process, lease_ms FROM notice
        WHERE user = ?1 AND (session_id = ?2 OR audience = ?3) ORDER BY key";
    let values = (place.user, place.session_id, word(NoticeAudience::User));
    connection.prepare(sql)?.query_map(values, Waiting::read)?.collect()
}

fn hold(
    connection: &Connection,
    keys: &[i64],
    holder: &Process,
    now_ms: u64,
) -> rusqlite::Result<()> {
    let sql = "UPDATE notice SET process = ?2, lease_ms = ?3 WHERE key = ?1";
    let mut statement = connection.prepare(sql)?;
    let (holder, until_ms) = (holder.to_string(), signed(now_ms.saturating_add(LEASE_MS)));
    for key in keys {
        statement.execute(params![key, holder, until_ms])?;
    }
    Ok(())
}

fn check_length(notice: &PluginNotice) -> Result<(), StoreError> {
    match length(notice) {
        bytes if bytes > NOTICE_BYTES_MAX => {
            let (what, bytes_max) = ("a message", NOTICE_BYTES_MAX);
            Err(StoreError::TooLong { what, bytes, bytes_max })
        }
        _ => Ok(()),
    }
}

fn length(notice: &PluginNotice) -> usize {
    notice.text.len() + notice.speech.as_ref().map_or(0, String::len)
}

fn insert(connection: &Connection, user: &str, held: &HeldNotice) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO notice (user, session_id, audience, notice, count)
        VALUES (?1, ?2, ?3, ?4, 1)";
    let notice = &held.notice;
    connection.execute(sql, (user, &notice.session_id, word(notice.audience), text(held)))
}

/// Stores a message that others were merged into.
fn replace(
    connection: &Connection,
    key: i64,
    held: &HeldNotice,
    added: i64,
) -> rusqlite::Result<usize> {
    let sql = "UPDATE notice SET notice = ?2, count = count + ?3 WHERE key = ?1";
    connection.execute(sql, (key, text(held), added))
}

fn text(held: &HeldNotice) -> String {
    serde_json::to_string(held).expect("a notice is plain data")
}

/// Finds the held message that a new one can be merged into.
fn held(
    connection: &Connection,
    user: &str,
    notice: &PluginNotice,
    now_ms: u64,
) -> rusqlite::Result<Option<(i64, HeldNotice)>> {
    let sql = "SELECT key, notice FROM notice
        WHERE user = ?1 AND session_id = ?2 AND audience = ?3 AND process IS NULL
            AND notice IS NOT NULL
        ORDER BY key DESC";
    let values = (user, &notice.session_id, word(notice.audience));
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let held = read_held(row)?;
        if held.notice.plugin == notice.plugin && held.is_held(now_ms) {
            return Ok(Some((row.get("key")?, held)));
        }
    }
    Ok(None)
}

fn read_held(row: &Row<'_>) -> rusqlite::Result<HeldNotice> {
    let text: String = row.get("notice")?;
    serde_json::from_str(&text).map_err(|error| foreign(row, "notice", error))
}

/// Whether two messages are of one plugin and short enough to be merged.
fn fits(one: &PluginNotice, other: &PluginNotice) -> bool {
    one.plugin == other.plugin && length(one) + length(other) + 2 <= NOTICE_BYTES_MAX
}

/// Appends a message to another one, on a line of its own.
fn append(to: &mut PluginNotice, notice: &PluginNotice) {
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
fn merge_oldest(
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
    let values = (user, session_id, word(notice.audience));
    let rows = OldRow::list(connection, sql, values)?;
    if rows.len() <= WAITING_MAX || gather_two(connection, &rows)? {
        return Ok(());
    }
    let [first, second, ..] = &rows[..] else { return Ok(()) };
    let sql = "UPDATE notice SET notice = NULL, count = ?2 WHERE key = ?1";
    connection.execute(sql, (first.key, first.count.saturating_add(second.count)))?;
    remove(connection, second.key)
}

/// A row that is not taken.
struct OldRow {
    key: i64,
    count: i64,
    held: Option<HeldNotice>,
}

impl OldRow {
    fn list(
        connection: &Connection,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> rusqlite::Result<Vec<Self>> {
        let read = |row: &Row<'_>| {
            let is_message = row.get_ref("notice")? != rusqlite::types::ValueRef::Null;
            let held = is_message.then(|| read_held(row)).transpose()?;
            Ok(Self { key: row.get("key")?, count: row.get("count")?, held })
        };
        connection.prepare(sql)?.query_map(values, read)?.collect()
    }
}

/// Merges the first two messages of one plugin that fit into one. Returns whether there were two.
fn gather_two(connection: &Connection, rows: &[OldRow]) -> rusqlite::Result<bool> {
    let messages = || rows.iter().filter_map(|row| Some((row, row.held.as_ref()?)));
    for (at, (first, held)) in messages().enumerate() {
        let mut later = messages().skip(at + 1);
        let second = later.find(|(_, other)| fits(&held.notice, &other.notice));
        let Some((second, other)) = second else { continue };
        let mut both = held.clone();
        append(&mut both.notice, &other.notice);
        // The merged message is only held back if both messages are.
        both.until_ms = both.until_ms.and(other.until_ms);
        replace(connection, first.key, &both, second.count)?;
        remove(connection, second.key)?;
        return Ok(true);
    }
    Ok(false)
}

fn remove(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM notice WHERE key = ?1", [key]).map(drop)
}

fn word(audience: NoticeAudience) -> &'static str {
    match audience {
        NoticeAudience::Conversation => "conversation",
        NoticeAudience::User => "user",
    }
}
