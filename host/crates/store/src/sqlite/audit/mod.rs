//! The audit in SQLite: the chain of records in the database, its key and its head next to it.

mod chain;
mod prune;
pub(crate) mod read;
mod row;
mod verify;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sallyport_contract::async_trait;

use self::read::AuditEntryReader;
use super::{
    SqliteStore,
    database::{self, Durability},
};
use crate::{
    audit::{
        AuditEntry, AuditFilter, AuditProblem, AuditStore, AuditVerification, AuditWriter,
        chain::{key, link::ChainLink},
    },
    error::StoreError,
};

/// The table of the log.
pub(super) const TABLE: &str = "
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
";

/// Whether a log was ever begun in a folder. The key is created after the database, and outlives
/// it.
pub(super) fn has_existing_log(folder: &Path) -> bool {
    folder.join(key::FILE).is_file()
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn read_records(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        self.run(move |store| AuditEntryReader::new(store, filter).collect()).await
    }

    async fn verify(&self, expected_head: Option<&str>) -> Result<AuditVerification, StoreError> {
        let expected = expected_head.map(ChainLink::parse_expected).transpose()?;
        self.run(move |store| {
            store.with_connection(|open| verify::verify_log(open, store.folder(), expected))
        })
        .await
    }

    async fn prune(&self, before_ms: u64) -> Result<u64, StoreError> {
        self.run(move |store| {
            store.with_connection(|connection| {
                let removed = prune::prune_records(connection, store.folder(), before_ms)?;
                if removed > 0 {
                    database::truncate_wal(connection);
                }
                Ok(removed)
            })
        })
        .await
    }

    fn writer(&self) -> Box<dyn AuditWriter> {
        let folder = self.folder().to_owned();
        Box::new(SqliteAuditWriter { folder, connection: None, durable_end: None })
    }
}

/// Writes with a connection of its own, so that its durability is not that of other writes.
struct SqliteAuditWriter {
    folder: PathBuf,
    /// Reopened after a failure: the folder may have been mounted again.
    connection: Option<Connection>,
    /// The end of the log after a durable write that the head does not name yet.
    durable_end: Option<ChainLink>,
}

impl SqliteAuditWriter {
    /// Takes the connection. It is only put back after a success.
    fn take_connection(&mut self) -> Result<Connection, StoreError> {
        self.connection.take().map_or_else(|| database::open_database(&self.folder), Ok)
    }
}

impl AuditWriter for SqliteAuditWriter {
    fn append(
        &mut self,
        lines: &[&str],
        is_durable: bool,
    ) -> Result<Vec<AuditProblem>, StoreError> {
        self.durable_end = None;
        let connection = self.take_connection()?;
        let durability = if is_durable { Durability::Durable } else { Durability::Deferred };
        let result = chain::append_records(&connection, &self.folder, durability, |appender| {
            lines.iter().try_for_each(|line| appender.push_record(line))
        });
        let result = result.map_err(|error| error.into_store_error(&self.folder))?;
        self.connection = Some(connection);
        self.durable_end = is_durable.then_some(result.end);
        Ok(result.problems)
    }

    fn sync(&mut self) -> Result<Vec<AuditProblem>, StoreError> {
        let end = self.durable_end.take();
        let connection = self.take_connection()?;
        let problems = match end {
            Some(end) => chain::advance_head(&connection, &self.folder, end).map(|()| Vec::new()),
            None => chain::sync_and_advance_head(&connection, &self.folder),
        };
        let problems = problems.map_err(|error| error.into_store_error(&self.folder))?;
        self.connection = Some(connection);
        Ok(problems)
    }
}
