//! The approvals in SQLite.

use rusqlite::{Connection, params};
use sallyport_contract::async_trait;

use super::SqliteStore;
use crate::{
    approvals::{AGE_MS_MAX, ApprovalStore, SessionApproval},
    error::StoreError,
    sql_integer::to_sql_integer,
};

/// The table of approvals, as it was before sessions had a user.
pub(super) const TABLE: &str = "
    CREATE TABLE approval (
        session_id TEXT NOT NULL,
        plugin TEXT NOT NULL,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        subject TEXT NOT NULL,
        rule TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, plugin, digest, tool, subject, rule)
    ) STRICT, WITHOUT ROWID;
";

/// The table with the user in its key. Earlier approvals are those of the local user.
pub(super) const TABLE_WITH_USER: &str = "
    ALTER TABLE approval RENAME TO approval_without_user;
    CREATE TABLE approval (
        user TEXT NOT NULL,
        session_id TEXT NOT NULL,
        plugin TEXT NOT NULL,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        subject TEXT NOT NULL,
        rule TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, user, plugin, digest, tool, subject, rule)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO approval
        SELECT 'local', session_id, plugin, digest, tool, subject, rule, at_ms
        FROM approval_without_user;
    DROP TABLE approval_without_user;
";

#[async_trait]
impl ApprovalStore for SqliteStore {
    async fn store_approval(&self, approval: &SessionApproval) -> Result<(), StoreError> {
        approval.check_lengths()?;
        let sql = "INSERT OR REPLACE INTO approval
            (user, session_id, plugin, digest, tool, subject, rule, at_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let SessionApproval { user, session_id, plugin, digest, tool, subject, rule, at_ms } =
            approval.clone();
        self.write(move |connection| {
            remove_expired_approvals(connection, at_ms)?;
            let at_ms = to_sql_integer(at_ms);
            let values = params![user, session_id, plugin, digest, tool, subject, rule, at_ms];
            connection.execute(sql, values)
        })
        .await
        .map(drop)
    }

    async fn is_approved(&self, wanted: &SessionApproval) -> Result<bool, StoreError> {
        let sql = "SELECT count(*) FROM approval
            WHERE user = ?1 AND session_id = ?2 AND plugin = ?3 AND digest = ?4 AND tool = ?5
            AND subject = ?6 AND rule = ?7 AND at_ms BETWEEN ?8 AND ?9";
        let SessionApproval { user, session_id, plugin, digest, tool, subject, rule, at_ms } =
            wanted.clone();
        let (oldest, newest) = (oldest_valid_ms(at_ms), to_sql_integer(at_ms));
        self.read(move |connection| {
            let key =
                params![user, session_id, plugin, digest, tool, subject, rule, oldest, newest];
            connection.query_row(sql, key, |row| Ok(row.get::<_, i64>(0)? > 0))
        })
        .await
    }

    async fn forget_session(&self, session_id: &str) -> Result<usize, StoreError> {
        let id = session_id.to_owned();
        self.write(move |connection| forget_session_approvals(connection, &id)).await
    }

    async fn prune(&self, now_ms: u64) -> Result<usize, StoreError> {
        self.write(move |connection| remove_expired_approvals(connection, now_ms)).await
    }
}

/// Removes every approval of a session, and returns their number.
pub(super) fn forget_session_approvals(
    connection: &Connection,
    session_id: &str,
) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM approval WHERE session_id = ?1", [session_id])
}

fn remove_expired_approvals(connection: &Connection, now_ms: u64) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM approval WHERE at_ms < ?1", [oldest_valid_ms(now_ms)])
}

fn oldest_valid_ms(now_ms: u64) -> i64 {
    to_sql_integer(now_ms.saturating_sub(AGE_MS_MAX))
}
