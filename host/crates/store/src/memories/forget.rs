//! Forgetting memories on request, with every trace of their texts, and evicting the oldest ones.

use rusqlite::{Connection, params};

use super::MemoryKind;
use crate::database::signed;

/// Which memories of a user to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget<'f> {
    /// The memories with these ids.
    Ids(&'f [u64]),
    /// The memories that come from this session and from no other.
    Session(&'f str),
    /// The memories that come from one turn of a session and from nowhere else.
    Turn {
        /// The session.
        session_id: &'f str,
        /// The turn.
        turn: u64,
    },
    /// All memories.
    All,
}

pub(super) fn forget(
    connection: &Connection,
    user: &str,
    which: Forget<'_>,
) -> rusqlite::Result<usize> {
    let keys = match which {
        Forget::Ids(ids) => of_ids(connection, user, ids)?,
        Forget::Session(session_id) => of_session(connection, user, session_id)?,
        Forget::Turn { session_id, turn } => of_turn(connection, user, session_id, turn)?,
        Forget::All => keys(connection, "SELECT key FROM memory WHERE user = ?1", [user])?,
    };
    remove(connection, &keys)?;
    if !keys.is_empty() {
        // The index only marks a row as removed, and keeps its words until the segment is
        // rewritten.
        connection.execute("INSERT INTO memory_words (memory_words) VALUES ('optimize')", ())?;
    }
    Ok(keys.len())
}

/// Removes the oldest memories of a user until at most `count_max` are left.
pub(super) fn forget_oldest(
    connection: &Connection,
    user: &str,
    count_max: u64,
) -> rusqlite::Result<()> {
    let sql = "SELECT count(*) FROM memory WHERE user = ?1";
    let count: i64 = connection.query_row(sql, [user], |row| row.get(0))?;
    if count <= signed(count_max) {
        return Ok(());
    }
    let sql = "SELECT key FROM memory JOIN memory_source ON memory = key WHERE user = ?1
        GROUP BY key ORDER BY max(at_ms), key LIMIT ?2";
    let keys = keys(connection, sql, params![user, count - signed(count_max)])?;
    remove(connection, &keys)
}

fn of_ids(connection: &Connection, user: &str, ids: &[u64]) -> rusqlite::Result<Vec<i64>> {
    let mut statement =
        connection.prepare("SELECT key FROM memory WHERE key = ?1 AND user = ?2")?;
    let mut keys = Vec::new();
    for id in ids {
        let key = signed(*id);
        if statement.exists(params![key, user])? && !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Removes a session from the sources of a user's memories, and returns the keys of the memories
/// that are left without a source.
fn of_session(connection: &Connection, user: &str, session: &str) -> rusqlite::Result<Vec<i64>> {
    let sql = "DELETE FROM memory_source WHERE session_id = ?2
        AND memory IN (SELECT key FROM memory WHERE user = ?1)";
    connection.execute(sql, (user, session))?;
    from_nowhere(connection, user)
}

/// As [`of_session`], for one turn. Initial memories are not a turn.
fn of_turn(
    connection: &Connection,
    user: &str,
    session: &str,
    turn: u64,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "DELETE FROM memory_source WHERE session_id = ?2 AND turn = ?3 AND kind = ?4
        AND memory IN (SELECT key FROM memory WHERE user = ?1)";
    connection.execute(sql, (user, session, signed(turn), MemoryKind::Turn.word()))?;
    from_nowhere(connection, user)
}

fn from_nowhere(connection: &Connection, user: &str) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT key FROM memory WHERE user = ?1
        AND NOT EXISTS (SELECT 1 FROM memory_source WHERE memory = key)";
    keys(connection, sql, [user])
}

fn keys(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<i64>> {
    connection.prepare(sql)?.query_map(values, |row| row.get(0))?.collect()
}

fn remove(connection: &Connection, keys: &[i64]) -> rusqlite::Result<()> {
    let tables = [("memory_words", "rowid"), ("memory_source", "memory"), ("memory", "key")];
    for (table, column) in tables {
        let sql = format!("DELETE FROM {table} WHERE {column} = ?1");
        let mut statement = connection.prepare(&sql)?;
        for key in keys {
            statement.execute([key])?;
        }
    }
    Ok(())
}
