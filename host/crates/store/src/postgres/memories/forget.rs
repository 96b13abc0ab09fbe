//! Forgetting memories on request, and evicting the oldest ones. A memory's sources go with it.

use crate::{
    memories::{MemorySelection, StoredMemoryKind},
    postgres::{error::PgError, transaction::Tx, values::escape},
    sql_integer::to_sql_integer,
};

pub(super) async fn forget_memories(
    tx: &Tx<'_>,
    user: &str,
    which: &MemorySelection,
) -> Result<usize, PgError> {
    tx.lock("memories", user).await?;
    let own = escape(user);
    let count = match which {
        MemorySelection::Ids(ids) => {
            let keys: Vec<i64> = ids.iter().map(|id| to_sql_integer(*id)).collect();
            let sql = "DELETE FROM memory WHERE user_id = $1 AND key = ANY($2)";
            tx.execute(sql, &[&own, &keys]).await?
        }
        MemorySelection::Session(session_id) => {
            let sql = "DELETE FROM memory_source WHERE session_id = $2
                AND memory IN (SELECT key FROM memory WHERE user_id = $1)";
            tx.execute(sql, &[&own, &escape(session_id)]).await?;
            remove_without_source(tx, user).await?
        }
        MemorySelection::Turn { session_id, turn } => {
            // Initial memories are not a turn.
            let sql = "DELETE FROM memory_source WHERE session_id = $2 AND turn = $3 AND kind = $4
                AND memory IN (SELECT key FROM memory WHERE user_id = $1)";
            let (session_id, kind) = (escape(session_id), StoredMemoryKind::Turn.as_str());
            tx.execute(sql, &[&own, &session_id, &to_sql_integer(*turn), &kind]).await?;
            remove_without_source(tx, user).await?
        }
        MemorySelection::All => {
            tx.execute("DELETE FROM memory WHERE user_id = $1", &[&own]).await?
        }
    };
    Ok(count as usize)
}

/// Removes the oldest memories of a user until at most `count_max` are left.
pub(super) async fn forget_oldest_memories(
    tx: &Tx<'_>,
    user: &str,
    count_max: u64,
) -> Result<(), PgError> {
    let own = escape(user);
    let count = tx.count("SELECT count(*) FROM memory WHERE user_id = $1", &[&own]).await?;
    let Some(surplus) = count.checked_sub(count_max).filter(|surplus| *surplus > 0) else {
        return Ok(());
    };
    let sql = "DELETE FROM memory WHERE key IN (
            SELECT key FROM memory JOIN memory_source ON memory = key WHERE user_id = $1
            GROUP BY key ORDER BY max(at_ms), key LIMIT $2
        )";
    tx.execute(sql, &[&own, &to_sql_integer(surplus)]).await.map(drop)
}

async fn remove_without_source(tx: &Tx<'_>, user: &str) -> Result<u64, PgError> {
    let sql = "DELETE FROM memory WHERE user_id = $1
        AND NOT EXISTS (SELECT 1 FROM memory_source WHERE memory = memory.key)";
    tx.execute(sql, &[&escape(user)]).await
}
