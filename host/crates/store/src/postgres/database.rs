//! Connections to the server, and transactions on them.
//!
//! The connections live on a runtime of the store, so any thread may use the store, and work that has
//! begun is done to its end even if its caller stops waiting.
//!
//! **What is retried.** A transaction that lost against another one, and one whose connection was
//! lost before its commit was sent: the server has undone both. So the work of a transaction is a
//! plain function that may run more than once. A connection that is lost during a commit is
//! reported, because nobody knows whether the server has committed.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use deadpool_postgres::{Hook, HookError, Object, Pool, Runtime};
use tokio::{runtime, sync::OnceCell};
use tokio_postgres::IsolationLevel;

use super::{
    connector::Connector,
    error::{PgError, PgRetry},
    migration,
    transaction::Tx,
};
use crate::{address::DatabaseAddress, error::StoreError};

/// Most connections of one process for its work. A server has a hundred by default, for all its
/// clients.
const CONNECTIONS_MAX: usize = 7;

/// Threads for the work of transactions. They mostly wait for the server.
const THREADS: usize = 2;

/// Longest wait for a connection.
pub(super) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a transaction is tried again after its connection was lost: long enough for a server
/// that restarts.
const RETRY_TIME_MAX: Duration = Duration::from_secs(10);

/// How often a transaction is tried again that lost against others.
const CONFLICTS_MAX: u32 = 20;

/// Pause before a transaction is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Settings of each connection. A transaction of a client that hangs ends, so that it does not hold
/// its locks for ever. What is acknowledged is on the disk of the server, whatever it does for others.
const SESSION_SQL: &str = "SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET client_min_messages = warning;
    SET standard_conforming_strings = on;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off';";

/// The result of the work of a transaction.
pub(crate) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, PgError>> + Send + 't>>;

/// A database on a server.
pub(crate) struct Database {
    address: DatabaseAddress,
    schema: String,
    connector: Connector,
    pool: Pool,
    /// One connection that nothing else uses. A lease must not end because transactions that wait
    /// for a lock have all the others.
    lease_pool: Pool,
    /// `Some` until it is dropped.
    runtime: Option<runtime::Runtime>,
    /// The id of the database, once it has the newest schema.
    ready: OnceCell<String>,
    was_reached: AtomicBool,
}

/// Whether a transaction changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A transaction that failed.
struct Failure {
    error: PgError,
    /// The commit was sent.
    is_committing: bool,
}

impl Database {
    /// Prepares the connections. The first one is made when it is needed.
    ///
    /// # Errors
    ///
    /// The address has a mistake, or TLS cannot be set up.
    pub(crate) fn new(address: DatabaseAddress, schema: &str) -> Result<Self, StoreError> {
        let unusable = |message: String| StoreError::Unreachable {
            database: address.shown().to_owned(),
            message,
        };
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let connector = Connector::new(&address).map_err(unusable)?;
        let pool = |size| build_pool(&connector, schema, size).map_err(unusable);
        let (pool, lease_pool) = (pool(CONNECTIONS_MAX)?, pool(1)?);
        let (ready, was_reached) = (OnceCell::new(), AtomicBool::new(false));
        let (runtime, schema) = (Some(runtime), schema.to_owned());
        Ok(Self { address, schema, connector, pool, lease_pool, runtime, ready, was_reached })
    }

    /// The address, without its password.
    pub(crate) fn shown(&self) -> &str {
        self.address.shown()
    }

    /// The schema of the tables.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// How connections are made that are not of the pool.
    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Where the work of this database runs.
    pub(crate) fn handle(&self) -> Option<&runtime::Handle> {
        self.runtime.as_ref().map(runtime::Runtime::handle)
    }

    /// Returns the random id of the database, which tells it from others. Brings it to the newest
    /// schema first.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or the database has a newer schema.
    pub(crate) async fn id(&self) -> Result<&str, PgError> {
        let id = self.ready.get_or_try_init(async || {
            let mut client = self.unprepared_client().await?;
            migration::run_migrations(&mut client, &self.schema, self.shown()).await
        });
        Ok(id.await?)
    }

    /// Returns a connection to a database whose schema may be missing or of any version.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub(crate) async fn unprepared_client(&self) -> Result<Object, PgError> {
        Ok(self.pool.get().await?)
    }

    /// Returns a connection, for work that is not a plain transaction.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or the database has a newer schema.
    pub(crate) async fn client(&self) -> Result<Object, PgError> {
        self.id().await?;
        self.unprepared_client().await
    }

    /// Runs `work` in one transaction, which is committed only if `work` succeeds. It may run more
    /// than once.
    ///
    /// # Errors
    ///
    /// The work fails, or the server.
    pub(crate) async fn run<A: Sync, T>(
        &self,
        access: Access,
        args: &A,
        work: for<'t> fn(&'t Tx<'t>, &'t A) -> Work<'t, T>,
    ) -> Result<T, StoreError> {
        self.run_over(&self.pool, access, args, work).await
    }

    /// Runs `work` like [`run`](Self::run) in a transaction that changes something, over the
    /// connection for leases.
    pub(super) async fn run_for_lease<T>(
        &self,
        work: for<'t> fn(&'t Tx<'t>, &'t ()) -> Work<'t, T>,
    ) -> Result<T, StoreError> {
        self.run_over(&self.lease_pool, Access::Write, &(), work).await
    }

    async fn run_over<A: Sync, T>(
        &self,
        pool: &Pool,
        access: Access,
        args: &A,
        work: for<'t> fn(&'t Tx<'t>, &'t A) -> Work<'t, T>,
    ) -> Result<T, StoreError> {
        let (begun, mut conflicts) = (Instant::now(), 0);
        loop {
            let ended = self.run_once(pool, access, args, work).await;
            let Failure { error, is_committing } = match ended {
                Ok(value) => {
                    self.was_reached.store(true, Ordering::Relaxed);
                    return Ok(value);
                }
                Err(failure) => failure,
            };
            let database = self.shown();
            match error.retry() {
                PgRetry::Lost if is_committing && access == Access::Write => {
                    return Err(StoreError::OutcomeUnknown { database: database.to_owned() });
                }
                PgRetry::Conflict if conflicts < CONFLICTS_MAX => conflicts += 1,
                PgRetry::Lost if self.may_come_back(begun) => {}
                _ => return Err(error.into_store_error(database)),
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Whether a server that was lost may be there again soon. One that never answered is not
    /// waited for.
    fn may_come_back(&self, begun: Instant) -> bool {
        self.was_reached.load(Ordering::Relaxed) && begun.elapsed() < RETRY_TIME_MAX
    }

    async fn run_once<A: Sync, T>(
        &self,
        pool: &Pool,
        access: Access,
        args: &A,
        work: for<'t> fn(&'t Tx<'t>, &'t A) -> Work<'t, T>,
    ) -> Result<T, Failure> {
        let before = |error: PgError| Failure { error, is_committing: false };
        self.id().await.map_err(before)?;
        let mut client = pool.get().await.map_err(|error| before(error.into()))?;
        let builder = client.build_transaction();
        let builder = match access {
            Access::Read => builder.isolation_level(IsolationLevel::RepeatableRead).read_only(true),
            Access::Write => builder.isolation_level(IsolationLevel::ReadCommitted),
        };
        let transaction = builder.start().await.map_err(|error| before(error.into()))?;
        let transaction = Tx::new(transaction);
        let value = work(&transaction, args).await.map_err(before)?;
        let committed = transaction.commit().await;
        committed.map_err(|error| Failure { error: error.into(), is_committing: true })?;
        Ok(value)
    }
}

/// Prepares connections with the settings of this store.
fn build_pool(connector: &Connector, schema: &str, size: usize) -> Result<Pool, String> {
    let setup = format!("{SESSION_SQL} SET search_path = {schema};");
    Pool::builder(connector.manager())
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CONNECT_TIME_MAX))
        .create_timeout(Some(CONNECT_TIME_MAX))
        .post_create(Hook::async_fn(move |client, _| {
            let setup = setup.clone();
            Box::pin(async move { client.batch_execute(&setup).await.map_err(HookError::Backend) })
        }))
        .build()
        .map_err(|error| error.to_string())
}

impl Drop for Database {
    /// A runtime may not be dropped where nothing may wait, as in a task of another one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
