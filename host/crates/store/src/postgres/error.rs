//! Why an operation on PostgreSQL failed.

use std::error::Error;

use deadpool_postgres::TimeoutType;
use tokio_postgres::error::{DbError, SqlState};

use crate::error::StoreError;

/// A failure of the database, or a request that cannot be met.
#[derive(Debug)]
pub(crate) enum PgError {
    /// The server, or the connection to it.
    Sql(tokio_postgres::Error),
    /// No connection was free or could be made.
    Pool(deadpool_postgres::PoolError),
    /// A value that this program would not have written.
    Foreign(String),
    /// Any other reason.
    Store(StoreError),
}

/// What may be done about a failure before the commit was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PgRetry {
    /// The transaction lost against another one. Nothing was written.
    Conflict,
    /// The connection is lost. Without a commit, nothing was written.
    Lost,
    /// The same would happen again.
    Never,
}

/// Codes of a server that is stopping, starting or has ended this connection.
const STOPPED: [SqlState; 6] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::CONNECTION_EXCEPTION,
    SqlState::CONNECTION_FAILURE,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
];

/// Codes of a transaction that another one was in the way of. A foreign key is violated when a body
/// is removed at the moment at which another transaction begins to use it.
const CONFLICTS: [SqlState; 3] = [
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::FOREIGN_KEY_VIOLATION,
];

/// Codes of a server without room.
const FULL: [SqlState; 2] = [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY];

impl PgError {
    /// Returns what may be done about the failure, if the commit was not sent.
    pub(crate) fn retry(&self) -> PgRetry {
        let error = match self {
            Self::Sql(error) | Self::Pool(deadpool_postgres::PoolError::Backend(error)) => error,
            _ => return PgRetry::Never,
        };
        match error.code() {
            Some(code) if CONFLICTS.contains(code) => PgRetry::Conflict,
            Some(code) if STOPPED.contains(code) => PgRetry::Lost,
            Some(_) => PgRetry::Never,
            None if is_broken(error) => PgRetry::Lost,
            None => PgRetry::Never,
        }
    }

    /// Adds the address of the database, without its password.
    pub(crate) fn into_store_error(self, database: &str) -> StoreError {
        let (database, path) = (database.to_owned(), database.into());
        match self {
            Self::Store(error) => error,
            Self::Foreign(message) => StoreError::Damaged { path, message },
            Self::Pool(deadpool_postgres::PoolError::Backend(error)) => from_sql(database, &error),
            Self::Pool(deadpool_postgres::PoolError::Timeout(TimeoutType::Wait)) => {
                StoreError::Busy { path }
            }
            Self::Pool(deadpool_postgres::PoolError::Timeout(_)) => {
                StoreError::Unreachable { database, message: "it does not answer".to_owned() }
            }
            Self::Pool(error) => StoreError::Unreachable { database, message: causes(&error) },
            Self::Sql(error) => from_sql(database, &error),
        }
    }
}

/// Whether a failure without a code of the server is one of the connection, and not of a value that
/// was to be sent or read.
fn is_broken(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
}

fn from_sql(database: String, error: &tokio_postgres::Error) -> StoreError {
    let path = database.clone().into();
    match error.code() {
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy { path },
        Some(code) if FULL.contains(code) => StoreError::Full { path },
        Some(code) if STOPPED.contains(code) => {
            StoreError::Unreachable { database, message: causes(error) }
        }
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            StoreError::ReadOnly { database, message: causes(error) }
        }
        Some(_) => StoreError::Refused { database, message: causes(error) },
        None if is_conversion(error) => StoreError::Damaged { path, message: causes(error) },
        None => StoreError::Unreachable { database, message: causes(error) },
    }
}

/// Whether a column has another type than this program gives it.
fn is_conversion(error: &tokio_postgres::Error) -> bool {
    error.source().is_some_and(|cause| cause.is::<tokio_postgres::types::WrongType>())
        || error.to_string().starts_with("error deserializing column")
}

/// The message of the server, or the error and its causes. Neither has the password.
fn causes(error: &(dyn Error + 'static)) -> String {
    let chain = || std::iter::successors(Some(error), |&error| error.source());
    if let Some(server) = chain().find_map(|error| error.downcast_ref::<DbError>()) {
        return format!("{} ({})", server.message(), server.code().code());
    }
    let mut text = String::new();
    for cause in chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    text
}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<deadpool_postgres::PoolError> for PgError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<StoreError> for PgError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
