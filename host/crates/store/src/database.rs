//! A database on a server, as the operator sees it: its state, and filling an empty one.

use std::path::Path;

pub use crate::database_report::{CopiedRows, DatabaseStatus, HomeCopy, SchemaState};
use crate::{address::DatabaseAddress, error::StoreError};

/// Connects to a database and reads its state. Changes nothing.
///
/// # Errors
///
/// The server cannot be reached, the database can only be read, or it has a newer schema; or this
/// program was built without PostgreSQL.
pub async fn check_database(address: &DatabaseAddress) -> Result<DatabaseStatus, StoreError> {
    #[cfg(feature = "postgres")]
    return crate::postgres::read_database_status(address).await;
    #[cfg(not(feature = "postgres"))]
    return Err(unsupported(address));
}

/// Copies everything from a folder with SQLite into a database that has nothing yet, and the key of
/// the audit into `local`, the folder for what stays on this machine. Either all of it is there then,
/// or nothing; the folder is only read. A copy that was killed can be made again, even if it was
/// killed when everything was there.
///
/// # Errors
///
/// The database has data, the server cannot be reached, or the folder cannot be read; or this program
/// was built without PostgreSQL.
pub async fn copy_to_database(
    folder: &Path,
    address: &DatabaseAddress,
    local: &Path,
) -> Result<HomeCopy, StoreError> {
    #[cfg(feature = "postgres")]
    {
        let store = crate::postgres::PostgresStore::open(address, local)?;
        let (folder, database) = (folder.to_owned(), address.shown().to_owned());
        let copied = tokio::task::spawn_blocking(move || store.copy_from(&folder)).await;
        copied.unwrap_or_else(|error| {
            Err(StoreError::Unreachable { database, message: error.to_string() })
        })
    }
    #[cfg(not(feature = "postgres"))]
    {
        let _ = (folder, local);
        Err(unsupported(address))
    }
}

#[cfg(not(feature = "postgres"))]
fn unsupported(address: &DatabaseAddress) -> StoreError {
    StoreError::NoPostgres { database: address.shown().to_owned() }
}
