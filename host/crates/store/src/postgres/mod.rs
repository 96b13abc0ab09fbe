//! The store in PostgreSQL, for several machines. Only this module and `sqlite` use SQL.
//!
//! The tables are in a schema of their own. Their columns are called as in SQLite, except that a user
//! is `user_id`, because `user` is a word of the language. Where SQLite has one writer at a time,
//! here a transaction locks what it is about to compare and change: a row, or a name ([`Tx::lock`]).
//!
//! What may not be in the database stays in a folder of each machine: the key of the audit, which has
//! to be the same on all of them, and the head of the audit, up to which this machine has seen it.

mod approvals;
mod audit;
mod connections;
mod connector;
mod copy;
mod copy_tables;
mod database;
mod error;
mod holders;
mod idempotency;
mod memories;
pub(crate) mod migration;
mod news;
mod notices;
mod presence;
mod questions;
mod rank;
mod sessions;
mod state;
mod status;
mod tasks;
mod timers;
mod transaction;
mod users;
mod values;
mod words;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::status::read_database_status;
use self::{
    database::{Access, Database, Work},
    holders::Renewal,
    news::News,
    transaction::Tx,
};
use crate::{address::DatabaseAddress, clock, error::StoreError, private_files};

/// The schema of the tables.
const SCHEMA: &str = "sallyport";

/// A database on a server, and the folder of this machine. Clones share the connections.
#[derive(Clone)]
pub(crate) struct PostgresStore {
    database: Arc<Database>,
    folder: PathBuf,
    renewal: Arc<Renewal>,
    news: Arc<News>,
    /// Reads the time in milliseconds since 1970, which may step back.
    pub(crate) clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl PostgresStore {
    /// Opens a database with a folder for what stays on this machine, and creates the folder if it
    /// is missing. Does not connect yet.
    ///
    /// # Errors
    ///
    /// The address has a mistake, or the folder cannot be created or is not private to this user.
    pub(crate) fn open(address: &DatabaseAddress, folder: &Path) -> Result<Self, StoreError> {
        Self::open_schema(address, SCHEMA, folder)
    }

    /// [`open`](Self::open), with tables in another schema.
    pub(crate) fn open_schema(
        address: &DatabaseAddress,
        schema: &str,
        folder: &Path,
    ) -> Result<Self, StoreError> {
        let folder = private_files::ensure_private_folder(folder)?;
        let database = Arc::new(Database::new(address.clone(), schema)?);
        let clock = Arc::new(clock::current_time_ms);
        Ok(Self { database, folder, renewal: Arc::default(), news: Arc::default(), clock })
    }

    fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// The name of this process as a holder of claims. Its lease is renewed from now on; the caller
    /// takes the first one with [`holders::renew`], in the transaction of its claim.
    fn hold(&self) -> String {
        self.renewal.begin(&self.database);
        holders::own_name()
    }

    /// Runs `work` in a transaction that changes something. See [`Database::run`].
    async fn write<A: Send + Sync + 'static, T: Send + 'static>(
        &self,
        args: A,
        work: for<'t> fn(&'t Tx<'t>, &'t A) -> Work<'t, T>,
    ) -> Result<T, StoreError> {
        self.run(Access::Write, args, work).await
    }

    /// Runs `work` in a transaction whose queries all see the same state.
    async fn read<A: Send + Sync + 'static, T: Send + 'static>(
        &self,
        args: A,
        work: for<'t> fn(&'t Tx<'t>, &'t A) -> Work<'t, T>,
    ) -> Result<T, StoreError> {
        self.run(Access::Read, args, work).await
    }

    async fn run<A: Send + Sync + 'static, T: Send + 'static>(
        &self,
        access: Access,
        args: A,
        work: for<'t> fn(&'t Tx<'t>, &'t A) -> Work<'t, T>,
    ) -> Result<T, StoreError> {
        let database = Arc::clone(&self.database);
        self.spawn(async move { database.run(access, &args, work).await }).await
    }

    /// Runs work on the threads of the database, to its end even if the caller stops waiting.
    async fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let handle = self.database.handle().ok_or_else(|| self.closed_error())?;
        // The work panicked, or the program is ending.
        handle.spawn(work).await.unwrap_or_else(|error| Err(self.failed_error(error.to_string())))
    }

    fn closed_error(&self) -> StoreError {
        self.failed_error("closed".to_owned())
    }

    fn failed_error(&self, message: String) -> StoreError {
        StoreError::Unreachable { database: self.database.shown().to_owned(), message }
    }

    /// Runs statements, as any program can that has the address.
    #[cfg(test)]
    pub(crate) async fn run_sql(&self, sql: &str) -> Result<(), StoreError> {
        self.write(sql.to_owned(), |tx, sql| Box::pin(async move { tx.batch(sql).await })).await
    }

    /// Returns a number that the database itself counts.
    #[cfg(test)]
    pub(crate) async fn count_sql(&self, sql: &str) -> Result<u64, StoreError> {
        let run = self.run(Access::Write, sql.to_owned(), |tx, sql| {
            Box::pin(async move { tx.count(sql, &[]).await })
        });
        run.await
    }
}
