//! The open sessions in PostgreSQL.

use sallyport_contract::async_trait;

use super::{
    PostgresStore,
    error::PgError,
    holders::{self, LiveHolders},
    transaction::Tx,
    values::{Columns, escape},
};
use crate::{
    error::StoreError,
    presence::{HEARTBEAT_AGE_MS_MAX, OpenSession, SessionClaim, SessionPresence},
    sql_integer::to_sql_integer,
};

/// The table of open sessions.
pub(super) const TABLE: &str = "
    CREATE TABLE presence (
        session_id TEXT COLLATE \"C\" NOT NULL,
        process TEXT NOT NULL,
        user_id TEXT COLLATE \"C\" NOT NULL,
        beat_ms BIGINT NOT NULL,
        PRIMARY KEY (session_id, process)
    );
";

#[async_trait]
impl SessionPresence for PostgresStore {
    async fn mark_open(&self, user: &str, session_id: &str, now_ms: u64) -> Result<(), StoreError> {
        let named = [user, session_id].map(str::to_owned);
        self.write((named, self.hold(), now_ms), |tx, ([user, session_id], holder, now_ms)| {
            Box::pin(async move {
                remove_dead_processes(tx).await?;
                insert_presence(tx, user, session_id, holder, *now_ms).await
            })
        })
        .await
    }

    async fn claim_session(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError> {
        let named = [user, session_id].map(str::to_owned);
        self.write((named, self.hold(), now_ms), |tx, ([user, session_id], holder, now_ms)| {
            Box::pin(claim_in(tx, user, session_id, holder, *now_ms))
        })
        .await
    }

    async fn send_heartbeat(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError> {
        let named = [user, session_id].map(str::to_owned);
        self.write((named, self.hold(), now_ms), |tx, ([user, session_id], holder, now_ms)| {
            Box::pin(async move {
                // The lease is renewed on its own.
                let sql = "UPDATE presence SET beat_ms = $3 WHERE session_id = $1 AND process = $2";
                let values = (escape(session_id), to_sql_integer(*now_ms));
                match tx.execute(sql, &[&values.0, holder, &values.1]).await? {
                    0 => claim_in(tx, user, session_id, holder, *now_ms).await,
                    _ => Ok(SessionClaim::Claimed),
                }
            })
        })
        .await
    }

    async fn mark_closed(&self, session_id: &str) -> Result<(), StoreError> {
        self.write((holders::own_name(), session_id.to_owned()), |tx, (holder, session_id)| {
            Box::pin(async move {
                let sql = "DELETE FROM presence WHERE session_id = $1 AND process = $2";
                tx.execute(sql, &[&escape(session_id), holder]).await.map(drop)
            })
        })
        .await
    }

    async fn list_open(&self, now_ms: u64) -> Result<Vec<OpenSession>, StoreError> {
        self.read(now_ms, |tx, now_ms| {
            Box::pin(
                async move { list_open_sessions(tx, &LiveHolders::read(tx).await?, *now_ms).await },
            )
        })
        .await
    }
}

/// Adds this process, unless another one that runs has the session open.
async fn claim_in(
    tx: &Tx<'_>,
    user: &str,
    session_id: &str,
    holder: &str,
    now_ms: u64,
) -> Result<SessionClaim, PgError> {
    // Or two that claim at once would both find nobody.
    tx.lock("presence", session_id).await?;
    remove_dead_processes(tx).await?;
    if is_open_elsewhere(tx, session_id, holder, now_ms).await? {
        return Ok(SessionClaim::OpenElsewhere);
    }
    insert_presence(tx, user, session_id, holder, now_ms).await?;
    Ok(SessionClaim::Claimed)
}

/// Adds this process, with a lease.
async fn insert_presence(
    tx: &Tx<'_>,
    user: &str,
    session_id: &str,
    holder: &str,
    now_ms: u64,
) -> Result<(), PgError> {
    holders::renew(tx).await?;
    let sql = "INSERT INTO presence (session_id, process, user_id, beat_ms)
        VALUES ($1, $2, $3, $4) ON CONFLICT (session_id, process)
        DO UPDATE SET user_id = excluded.user_id, beat_ms = excluded.beat_ms";
    let (user, session_id, now_ms) = (escape(user), escape(session_id), to_sql_integer(now_ms));
    tx.execute(sql, &[&session_id, &holder, &user, &now_ms]).await.map(drop)
}

/// Whether another process has a session open, after [`remove_dead_processes`].
async fn is_open_elsewhere(
    tx: &Tx<'_>,
    session_id: &str,
    holder: &str,
    now_ms: u64,
) -> Result<bool, PgError> {
    let sql = "SELECT count(*) FROM presence
        WHERE session_id = $1 AND process <> $2 AND beat_ms >= $3";
    let oldest_ms = to_sql_integer(now_ms.saturating_sub(HEARTBEAT_AGE_MS_MAX));
    Ok(tx.count(sql, &[&escape(session_id), &holder, &oldest_ms]).await? > 0)
}

/// Lists the open sessions, within the caller's transaction.
pub(super) async fn list_open_sessions(
    tx: &Tx<'_>,
    live: &LiveHolders,
    now_ms: u64,
) -> Result<Vec<OpenSession>, PgError> {
    let sql = "SELECT session_id, user_id, process, beat_ms FROM presence
        ORDER BY session_id, user_id";
    let mut open = Vec::new();
    for row in tx.rows(sql, &[]).await? {
        let age_ms = now_ms.saturating_sub(row.number("beat_ms")?);
        if age_ms <= HEARTBEAT_AGE_MS_MAX && !live.has_ended(&row.text("process")?) {
            let (session_id, user) = (row.text("session_id")?, row.text("user_id")?);
            open.push(OpenSession { session_id, user });
        }
    }
    open.dedup();
    Ok(open)
}

async fn remove_dead_processes(tx: &Tx<'_>) -> Result<(), PgError> {
    let live = LiveHolders::read(tx).await?;
    for row in tx.rows("SELECT DISTINCT process FROM presence", &[]).await? {
        let name = row.text("process")?;
        if live.has_ended(&name) {
            tx.execute("DELETE FROM presence WHERE process = $1", &[&name]).await?;
        }
    }
    Ok(())
}
