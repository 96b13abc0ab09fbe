//! Notices: messages to the person that wait until a conversation is there to show them.
//!
//! Whoever shows messages takes them first and confirms them when they are shown. What is taken is
//! handed to nobody else while its taker lives; when that process is gone without having confirmed,
//! nobody knows whether they were shown, and they are handed out again: a message may come twice so,
//! and is never lost.
//!
//! For each session so many messages wait at most, and as many for the user, whatever the session. Of
//! more, the oldest become one row that tells how many they were.

use rusqlite::{Connection, Row, params};
use sallyport_contract::services::{Audience, Notice};

use crate::{
    database::{foreign, signed, unsigned},
    error::StoreError,
    presence,
    process::{self, Life, Process},
    store::Store,
};

/// Most messages of one session, and most to the user, that wait. Nobody reads more when a
/// conversation goes on.
const WAITING_MAX: usize = 64;

/// Most messages that are handed out at once. Whoever takes them comes back for the others.
const TAKEN_MAX: usize = 100;

/// Longest message, with what is said aloud.
const NOTICE_BYTES_MAX: usize = 64 << 10;

/// How long a taker has where nobody can see whether it lives. Showing takes less than a second.
const LEASE_MS: u64 = 60_000;

/// The table of messages. Of those that were merged, `notice` is gone and `count` tells how many.
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

/// The messages that wait.
#[derive(Debug, Clone, Copy)]
pub struct KeptNotices<'s> {
    store: &'s Store,
}

/// Messages that are about to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The messages, the oldest first.
    pub notices: Vec<Notice>,
    /// How many older ones came before them and are kept no longer.
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

    /// Keeps a message for a user.
    ///
    /// # Errors
    ///
    /// The message is too long, or the database cannot be written.
    pub fn keep(self, user: &str, notice: &Notice) -> Result<(), StoreError> {
        let bytes = notice.text.len() + notice.speech.as_ref().map_or(0, String::len);
        if bytes > NOTICE_BYTES_MAX {
            let (what, bytes_max) = ("a message", NOTICE_BYTES_MAX);
            return Err(StoreError::TooLong { what, bytes, bytes_max });
        }
        self.store.write(|connection| {
            insert(connection, user, notice)?;
            Ok(merge_oldest(connection, user, notice)?)
        })
    }

    /// Takes the messages that a user's session is to show: its own, and those to the user that no
    /// other open session will show. They have to be confirmed, or given back.
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

    /// Gives back messages that were not shown, so that they wait again.
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

/// Removes the messages that only a conversation would have shown which is no more.
pub(crate) fn forget(connection: &Connection, session_id: &str) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM notice WHERE session_id = ?1 AND audience = ?2";
    connection.execute(sql, (session_id, word(Audience::Conversation)))
}

/// Where messages are about to be shown.
pub(crate) struct Place<'p> {
    pub(crate) user: &'p str,
    pub(crate) session_id: &'p str,
    pub(crate) now_ms: u64,
}

struct Waiting {
    key: i64,
    session_id: String,
    notice: Option<Notice>,
    count: u64,
    process: Option<String>,
    lease_ms: Option<u64>,
}

impl Waiting {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let text: Option<String> = row.get("notice")?;
        let notice = text.map(|text| serde_json::from_str(&text)).transpose();
        Ok(Self {
            key: row.get("key")?,
            session_id: row.get("session_id")?,
            notice: notice.map_err(|error| foreign(row, "notice", error))?,
            count: unsigned(row.get("count")?),
            process: row.get("process")?,
            lease_ms: row.get::<_, Option<i64>>("lease_ms")?.map(unsigned),
        })
    }

    /// Whether nobody is about to show it.
    fn is_free(&self, now_ms: u64) -> bool {
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
                Some(notice) => taken.notices.push(notice),
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
    let values = (place.user, place.session_id, word(Audience::User));
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

fn insert(connection: &Connection, user: &str, notice: &Notice) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO notice (user, session_id, audience, notice, count)
        VALUES (?1, ?2, ?3, ?4, 1)";
    let text = serde_json::to_string(notice).expect("a notice is plain data");
    connection.execute(sql, (user, &notice.session_id, word(notice.audience), text))
}

/// Makes one row of the two oldest that nobody is about to show, where there are too many.
fn merge_oldest(connection: &Connection, user: &str, notice: &Notice) -> rusqlite::Result<()> {
    let sql = "SELECT key, count FROM notice
        WHERE user = ?1 AND (session_id = ?2 OR ?2 IS NULL) AND audience = ?3 AND process IS NULL
        ORDER BY key";
    // What is for the user comes to any session, and there may be a new one for each message.
    let session_id = match notice.audience {
        Audience::Conversation => Some(&notice.session_id),
        Audience::User => None,
    };
    let values = (user, session_id, word(notice.audience));
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    let [(first, count), (second, added), ..] = rows[..] else { return Ok(()) };
    if rows.len() > WAITING_MAX {
        let sql = "UPDATE notice SET notice = NULL, count = ?2 WHERE key = ?1";
        connection.execute(sql, (first, count.saturating_add(added)))?;
        connection.execute("DELETE FROM notice WHERE key = ?1", [second])?;
    }
    Ok(())
}

fn word(audience: Audience) -> &'static str {
    match audience {
        Audience::Conversation => "conversation",
        Audience::User => "user",
    }
}
