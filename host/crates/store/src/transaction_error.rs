//! Why an operation was refused, for code that does not know the path of the database.

use crate::error::StoreError;

/// A failure of the database, or a request that cannot be met.
#[derive(Debug)]
pub(crate) enum TransactionError {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl TransactionError {
    pub(crate) fn into_store_error(
        self,
        failed: impl Fn(rusqlite::Error) -> StoreError,
    ) -> StoreError {
        match self {
            Self::Sql(error) => failed(error),
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
