//! Why something was not done, to those who do not know the path that an error of the database
//! names.

use crate::error::StoreError;

/// The database failed, or the request cannot be met.
#[derive(Debug)]
pub(crate) enum Refusal {
    Sql(rusqlite::Error),
    Told(StoreError),
}

impl Refusal {
    pub(crate) fn into_error(self, failed: impl Fn(rusqlite::Error) -> StoreError) -> StoreError {
        match self {
            Self::Sql(error) => failed(error),
            Self::Told(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}
