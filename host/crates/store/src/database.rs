//! A database on a server, as the operator sees it: its state.

use crate::{address::DatabaseAddress, error::StoreError};

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

#[cfg(not(feature = "postgres"))]
fn unsupported(address: &DatabaseAddress) -> StoreError {
    StoreError::NoPostgres { database: address.shown().to_owned() }
}
