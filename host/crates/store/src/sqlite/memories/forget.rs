//! Forgetting memories on request, with every trace of their texts, and evicting the oldest ones.

use rusqlite::{Connection, params};

use crate::{
    memories::{MemorySelection, StoredMemoryKind},
    sql_integer::to_sql_integer,
};

pub(super) fn forget_memories(
    connection: &Connection,
    user: &str,
    which: &MemorySelection,
) -> rusqlite::Result<usize> {
    let keys = match which {
        MemorySelection::Ids(ids) => find_by_ids(connection, user, ids)?,
        MemorySelection::Session(session_id) => {
            remove_session_source(connection, user, session_id)?
        }
        MemorySelection::Turn { session_id, turn } => {
            remove_turn_source(connection, user, session_id, *turn)?
        }
        MemorySelection::All => {
            query_keys(connection, "SELECT key FROM memory WHERE user = ?1", [user])?
        }
    };
    remove_memories(connection, &keys)?;
    if !keys.is_empty() {
        // The index only marks a row as removed, and keeps its words until the segment is
        // rewritten.
        connection.execute("INSERT INTO memory_words (memory_words) VALUES ('optimize')", ())?;
    }
    Ok(keys.len())
}

/// Removes the oldest memories of a user until at most `count_max` are left.
pub(super) fn forget_oldest_memories(
    connection: &Connection,
    user: &str,
    count_max: u64,
) -> rusqlite::Result<()> {
    let sql = "SELECT count(*) FROM memory WHERE user = ?1";
    let count: i64 = connection.query_row(sql, [user], |row| row.get(0))?;
    if count <= to_sql_integer(count_max) {
        return Ok(());
    }
    let sql = "SELECT key FROM memory JOIN memory_source ON memory = key WHERE user = ?1
        GROUP BY key ORDER BY max(at_ms), key LIMIT ?2";
    let keys = query_keys(connection, sql, params![user, count - to_sql_integer(count_max)])?;
    remove_memories(connection, &keys)
}

fn find_by_ids(connection: &Connection, user: &str, ids: &[u64]) -> rusqlite::Result<Vec<i64>> {
    let mut statement =
        connection.prepare("SELECT key FROM memory WHERE key = ?1 AND user = ?2")?;
    let mut keys = Vec::new();
    for id in ids {
        let key = to_sql_integer(*id);
        if statement.exists(params![key, user])? && !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Removes a session from the sources of a user's memories, and returns the keys of the memories
/// that are left without a source.
fn remove_session_source(
    connection: &Connection,
    user: &str,
    session: &str,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "DELETE FROM memory_source WHERE session_id = ?2
        AND memory IN (SELECT key FROM memory WHERE user = ?1)";
    connection.execute(sql, (user, session))?;
    find_without_source(connection, user)
}

/// As [`remove_session_source`], for one turn. Initial memories are not a turn.
fn remove_turn_source(
    connection: &Connection,
    user: &str,
    session: &str,
    turn: u64,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "DELETE FROM memory_source WHERE session_id = ?2 AND turn = ?3 AND kind = ?4
        AND memory IN (SELECT key FROM memory WHERE user = ?1)";
    connection
        .execute(sql, (user, session, to_sql_integer(turn), StoredMemoryKind::Turn.as_str()))?;
    find_without_source(connection, user)
}

fn find_without_source(connection: &Connection, user: &str) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT key FROM memory WHERE user = ?1
        AND NOT EXISTS (SELECT 1 FROM memory_source WHERE memory = key)";
    query_keys(connection, sql, [user])
}

fn query_keys(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<i64>> {
    connection.prepare(sql)?.query_map(values, |row| row.get(0))?.collect()
}

fn remove_memories(connection: &Connection, keys: &[i64]) -> rusqlite::Result<()> {
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
