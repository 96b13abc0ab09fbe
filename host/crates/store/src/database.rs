//! A database on a server, as the operator sees it: its state, and filling an empty one.

use std::path::Path;

use crate::{address::DatabaseAddress, error::StoreError};

/// What was copied of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedRows {
    /// What the rows are, in the plural.
    pub what: &'static str,
    /// How many there are.
    pub rows: u64,
}

/// What became of the copy of a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeCopy {
    /// It was copied now.
    Copied(Vec<CopiedRows>),
    /// It was copied before, and nothing was added to it since.
    CopiedBefore,
}

/// The state of the tables in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// There are none. The first use creates them.
    Missing,
    /// They were made by an older program. The next use migrates them.
    Older {
        /// The version of their schema.
        found: i64,
        /// The newest version.
        newest: i64,
    },
    /// They have the newest schema.
    Current {
        /// Its version.
        version: i64,
    },
}

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// The address, without its password.
    pub database: String,
    /// The version of the server.
    pub server_version: String,
    /// The state of the tables.
    pub schema: SchemaState,
    /// How many sessions there are; none if the tables are not [`SchemaState::Current`].
    pub sessions: u64,
    /// Settings of the server with which it may lose what it has acknowledged.
    pub unsafe_settings: Vec<String>,
}

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
