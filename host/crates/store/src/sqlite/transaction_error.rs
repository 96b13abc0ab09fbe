//! Why an operation was refused, for code that does not know the path of the database.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::database;
use crate::error::StoreError;

/// A failure of the database, or a request that cannot be met.
#[derive(Debug)]
pub(crate) enum TransactionError {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl TransactionError {
    /// Adds the path of the database, which is in `folder`.
    pub(crate) fn into_store_error(self, folder: &Path) -> StoreError {
        match self {
            Self::Sql(error) => from_sql(folder.join(database::FILE), &error),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Classifies a database error, so that users see the cause instead of a code.
pub(crate) fn from_sql(path: PathBuf, error: &rusqlite::Error) -> StoreError {
    let message = error.to_string();
    // The value is not one that this program writes.
    if let rusqlite::Error::FromSqlConversionFailure(..)
    | rusqlite::Error::InvalidColumnType(..)
    | rusqlite::Error::IntegralValueOutOfRange(..) = error
    {
        return StoreError::Damaged { path, message };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { path, message }
        }
        _ => StoreError::Database { path, message },
    }
}
