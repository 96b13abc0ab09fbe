//! The approvals in PostgreSQL.

use sallyport_contract::async_trait;

use super::{
    PostgresStore,
    error::PgError,
    transaction::Tx,
    values::{self, escape},
};
use crate::{
    approvals::{AGE_MS_MAX, ApprovalStore, SessionApproval},
    error::StoreError,
    sql_integer::to_sql_integer,
};

/// The table of approvals. `key` is the hash of everything that has to be equal, because a subject
/// may be longer than an index takes.
pub(super) const TABLE: &str = "
    CREATE TABLE approval (
        key BYTEA PRIMARY KEY,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        plugin TEXT NOT NULL,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        subject TEXT NOT NULL,
        rule TEXT NOT NULL,
        at_ms BIGINT NOT NULL
    );
    CREATE INDEX approval_session ON approval USING hash (session_id);
    CREATE INDEX approval_at ON approval (at_ms);
";

#[async_trait]
impl ApprovalStore for PostgresStore {
    async fn store_approval(&self, approval: &SessionApproval) -> Result<(), StoreError> {
        approval.check_lengths()?;
        self.write(approval.clone(), |tx, approval| Box::pin(store_in(tx, approval))).await
    }

    async fn is_approved(&self, wanted: &SessionApproval) -> Result<bool, StoreError> {
        self.read(wanted.clone(), |tx, wanted| {
            Box::pin(async move {
                let sql =
                    "SELECT count(*) FROM approval WHERE key = $1 AND at_ms BETWEEN $2 AND $3";
                let (oldest, newest) =
                    (oldest_valid_ms(wanted.at_ms), to_sql_integer(wanted.at_ms));
                Ok(tx.count(sql, &[&key_of(wanted), &oldest, &newest]).await? > 0)
            })
        })
        .await
    }

    async fn forget_session(&self, session_id: &str) -> Result<usize, StoreError> {
        self.write(session_id.to_owned(), |tx, id| Box::pin(forget_session_approvals(tx, id))).await
    }

    async fn prune(&self, now_ms: u64) -> Result<usize, StoreError> {
        self.write(now_ms, |tx, now_ms| Box::pin(remove_expired(tx, *now_ms))).await
    }
}

async fn store_in(tx: &Tx<'_>, approval: &SessionApproval) -> Result<(), PgError> {
    remove_expired(tx, approval.at_ms).await?;
    let SessionApproval { user, session_id, plugin, digest, tool, subject, rule, at_ms } = approval;
    let texts = [user, session_id, plugin, digest, tool, subject, rule].map(|text| escape(text));
    let [user, session_id, plugin, digest, tool, subject, rule] = &texts;
    let sql = "INSERT INTO approval
        (key, user_id, session_id, plugin, digest, tool, subject, rule, at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (key) DO UPDATE SET at_ms = excluded.at_ms";
    let (key, at_ms) = (key_of(approval), to_sql_integer(*at_ms));
    tx.execute(sql, &[&key, user, session_id, plugin, digest, tool, subject, rule, &at_ms])
        .await
        .map(drop)
}

/// Removes every approval of a session, and returns their number.
pub(super) async fn forget_session_approvals(
    tx: &Tx<'_>,
    session_id: &str,
) -> Result<usize, PgError> {
    let sql = "DELETE FROM approval WHERE session_id = $1";
    Ok(tx.execute(sql, &[&escape(session_id)]).await? as usize)
}

async fn remove_expired(tx: &Tx<'_>, now_ms: u64) -> Result<usize, PgError> {
    let sql = "DELETE FROM approval WHERE at_ms < $1";
    Ok(tx.execute(sql, &[&oldest_valid_ms(now_ms)]).await? as usize)
}

fn key_of(approval: &SessionApproval) -> Vec<u8> {
    let SessionApproval { user, session_id, plugin, digest, tool, subject, rule, .. } = approval;
    values::hash_key(&[user, session_id, plugin, digest, tool, subject, rule])
}

fn oldest_valid_ms(now_ms: u64) -> i64 {
    to_sql_integer(now_ms.saturating_sub(AGE_MS_MAX))
}
