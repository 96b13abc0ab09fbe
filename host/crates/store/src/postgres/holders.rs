//! The processes that hold claims, and whether they still run.
//!
//! Processes of other machines cannot be inspected. So each process that holds something renews a
//! lease, by the clock of the server; without it, what the process holds is free. A process of this
//! machine that has ended is known at once.

use std::{
    collections::HashSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{database::Database, error::PgError, transaction::Tx, values::Columns};
use crate::process::{ProcessIdentity, ProcessLiveness};

/// How often a lease is renewed. Renewing is one small write.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// How long a lease lasts, in milliseconds: two renewals may fail. What a machine holds that loses
/// its power is free after this time, so that its sessions continue elsewhere within ten seconds.
const LEASE_MS: i64 = 6_000;

/// How long an ended lease is kept, in milliseconds, to be seen by operators.
const KEPT_MS: i64 = 60 * 60 * 1000;

/// The table of leases. `until_ms` is by the clock of the server.
pub(super) const TABLE: &str = "
    CREATE TABLE holder (
        process TEXT PRIMARY KEY,
        until_ms BIGINT NOT NULL
    );
";

/// The time of the server in milliseconds since 1970.
const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The name of this process as a holder.
pub(super) fn own_name() -> String {
    ProcessIdentity::current_process().to_string()
}

/// Whether the server has started so recently that nobody can have renewed a lease that ended while it
/// was down. Then all that are kept count.
const HAS_JUST_STARTED: &str =
    "pg_postmaster_start_time() > clock_timestamp() - $1 * interval '1 millisecond'";

/// The processes that have a lease.
pub(super) struct LiveHolders(HashSet<String>);

impl LiveHolders {
    /// Reads them, within the caller's transaction.
    pub(super) async fn read(tx: &Tx<'_>) -> Result<Self, PgError> {
        let sql =
            format!("SELECT process FROM holder WHERE until_ms > {NOW_MS} OR {HAS_JUST_STARTED}");
        let rows = tx.rows(&sql, &[&(LEASE_MS as f64)]).await?;
        let names = rows.iter().map(|row| row.text("process"));
        Ok(Self(names.collect::<Result<_, _>>()?))
    }

    /// Whether a process has ended, as far as this one can tell.
    pub(super) fn has_ended(&self, name: &str) -> bool {
        self.liveness(name) == ProcessLiveness::Ended
    }

    /// Whether a process runs. It is unknown of one that this machine cannot inspect and that has a
    /// lease: it may hang.
    pub(super) fn liveness(&self, name: &str) -> ProcessLiveness {
        let process = name.parse::<ProcessIdentity>().ok();
        match process.and_then(|process| process.liveness_here()) {
            Some(known @ (ProcessLiveness::Running | ProcessLiveness::Ended)) => known,
            Some(ProcessLiveness::Unknown) | None if self.0.contains(name) => {
                ProcessLiveness::Unknown
            }
            Some(ProcessLiveness::Unknown) | None => ProcessLiveness::Ended,
        }
    }
}

/// Gives this process a lease, and removes what is left of others long gone.
pub(super) async fn renew(tx: &Tx<'_>) -> Result<(), PgError> {
    let sql = format!(
        "INSERT INTO holder (process, until_ms) VALUES ($1, {NOW_MS} + $2)
         ON CONFLICT (process) DO UPDATE SET until_ms = excluded.until_ms"
    );
    tx.execute(&sql, &[&own_name(), &LEASE_MS]).await?;
    let sql = format!("DELETE FROM holder WHERE until_ms < {NOW_MS} - $1");
    tx.execute(&sql, &[&KEPT_MS]).await.map(drop)
}

/// Renews the lease of this process for as long as the store is open.
#[derive(Default)]
pub(super) struct Renewal {
    has_begun: AtomicBool,
}

impl Renewal {
    /// Begins to renew, at the first call.
    pub(super) fn begin(&self, database: &Arc<Database>) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(handle) = database.handle() {
            handle.spawn(renew_for_ever(Arc::downgrade(database)));
        }
    }
}

async fn renew_for_ever(database: Weak<Database>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let Some(database) = database.upgrade() else { return };
        // The next one is tried anyway. Until then, the claims have their own numbers to be told by.
        let _ = database.run_for_lease(|tx, ()| Box::pin(renew(tx))).await;
    }
}
