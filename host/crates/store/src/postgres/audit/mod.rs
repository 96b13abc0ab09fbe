//! The audit in PostgreSQL: one chain for all machines that share the database.
//!
//! Whoever writes holds a lock and continues from the current end of the log, so the machines write
//! one chain, and its numbers are the order of the commits. All machines need the same key; the
//! database has an id of the key, so one with another key is refused instead of breaking the chain.
//! Each machine has a head of its own, outside of the database: the last record that it knows to be
//! on the server's disk. A log that is cut off behind the head of any machine is found out there.

mod chain;
mod prune;
mod rows;
mod verify;

use sallyport_contract::async_trait;

use super::PostgresStore;
use crate::{
    audit::{
        AuditEntry, AuditFilter, AuditProblem, AuditStore, AuditVerification, AuditWriter,
        chain::link::ChainLink,
    },
    error::StoreError,
};

/// The tables of the log. `is_remark` finds the log's remarks about itself without reading all of
/// it. `audit_key` has an id of the key, and no key.
pub(super) const TABLES: &str = "
    CREATE TABLE audit (
        seq BIGINT PRIMARY KEY,
        text TEXT NOT NULL,
        hash BYTEA NOT NULL,
        is_remark BOOLEAN NOT NULL
            GENERATED ALWAYS AS (position('\"log\":' IN text) > 0) STORED
    );
    CREATE INDEX audit_remark ON audit (seq) WHERE is_remark;
    CREATE TABLE audit_key (
        lone BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (lone),
        id TEXT NOT NULL,
        synced BIGINT NOT NULL DEFAULT 0
    );
";

#[async_trait]
impl AuditStore for PostgresStore {
    async fn read_records(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        let mut page = rows::Page::first(&filter);
        let (mut entries, limit) = (Vec::new(), filter.limit.unwrap_or(usize::MAX));
        while entries.len() < limit {
            let rows =
                self.read(page.clone(), |tx, page| Box::pin(rows::read_page(tx, page))).await?;
            let Some(next) = page.after(&rows) else { break };
            page = next;
            let found = rows.into_iter().map(AuditEntry::from).filter(|entry: &AuditEntry| {
                entry.record.as_ref().is_none_or(|record| filter.accepts_record(record))
            });
            entries.extend(found);
        }
        entries.truncate(limit);
        Ok(entries)
    }

    async fn verify(&self, expected_head: Option<&str>) -> Result<AuditVerification, StoreError> {
        let expected = expected_head.map(ChainLink::parse_expected).transpose()?;
        verify::verify_log(self, expected).await
    }

    async fn prune(&self, before_ms: u64) -> Result<u64, StoreError> {
        let store = self.clone();
        self.spawn(async move { prune::prune_records(&store, before_ms).await }).await
    }

    fn writer(&self) -> Box<dyn AuditWriter> {
        Box::new(PostgresAuditWriter { store: self.clone(), durable_end: None })
    }
}

/// Writes from the thread of one log.
struct PostgresAuditWriter {
    store: PostgresStore,
    /// The end of the log after a durable write that the head does not name yet.
    durable_end: Option<ChainLink>,
}

impl PostgresAuditWriter {
    fn wait<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match self.store.database.handle() {
            Some(handle) => handle.block_on(work),
            None => Err(StoreError::Unreachable {
                database: self.store.database.shown().to_owned(),
                message: "closed".to_owned(),
            }),
        }
    }
}

impl AuditWriter for PostgresAuditWriter {
    fn append(
        &mut self,
        lines: &[&str],
        is_durable: bool,
    ) -> Result<Vec<AuditProblem>, StoreError> {
        self.durable_end = None;
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        let appended = self.wait(chain::append_records(&self.store, lines, is_durable))?;
        self.durable_end = is_durable.then_some(appended.end);
        Ok(appended.problems)
    }

    fn sync(&mut self) -> Result<Vec<AuditProblem>, StoreError> {
        match self.durable_end.take() {
            Some(end) => self.wait(chain::advance_head(&self.store, end)).map(|()| Vec::new()),
            None => self.wait(chain::sync_and_advance_head(&self.store)),
        }
    }
}
