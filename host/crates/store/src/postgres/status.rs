//! What an operator wants to know of a database.

use std::sync::Arc;

use deadpool_postgres::Object;

use super::{SCHEMA, database::Database, error::PgError, migration};
use crate::{
    address::DatabaseAddress,
    database_report::{DatabaseStatus, SchemaState},
    error::StoreError,
};

/// Connects to a database and reads its state. Changes nothing.
///
/// # Errors
///
/// The server cannot be reached, the database can only be read, or it has a newer schema.
pub(crate) async fn read_database_status(
    address: &DatabaseAddress,
) -> Result<DatabaseStatus, StoreError> {
    let shown = address.shown().to_owned();
    let failed = |message: String| StoreError::Unreachable { database: shown.clone(), message };
    let database = Arc::new(Database::new(address.clone(), SCHEMA)?);
    let Some(handle) = database.handle().cloned() else { return Err(failed("closed".to_owned())) };
    // The threads of the database end with its last owner, which must not be on one of them.
    let used = Arc::clone(&database);
    let reading = handle.spawn(async move { read_status(&used).await });
    let read = reading.await.map_err(|error| failed(error.to_string()))?;
    read.map_err(|error| error.into_store_error(&shown))
}

async fn read_status(database: &Database) -> Result<DatabaseStatus, PgError> {
    let client = database.unprepared_client().await?;
    let shown = database.shown().to_owned();
    let sql = "SELECT current_setting('server_version'),
        current_setting('transaction_read_only') = 'on',
        ARRAY(SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes')
            AND setting = 'off' ORDER BY name)";
    let row = client.query_one(sql, &[]).await?;
    if row.try_get::<_, bool>(1)? {
        let message = "transaction_read_only is on".to_owned();
        return Err(StoreError::ReadOnly { database: shown, message }.into());
    }
    let schema = read_schema_state(&client, &shown).await?;
    let sessions = match schema {
        SchemaState::Current { .. } => count_sessions(&client).await?,
        SchemaState::Missing | SchemaState::Older { .. } => 0,
    };
    let (server_version, unsafe_settings) = (row.try_get(0)?, row.try_get(2)?);
    Ok(DatabaseStatus { database: shown, server_version, schema, sessions, unsafe_settings })
}

async fn read_schema_state(client: &Object, database: &str) -> Result<SchemaState, PgError> {
    let newest = migration::NEWEST;
    Ok(match migration::read_version(client).await? {
        None => SchemaState::Missing,
        Some((found, _)) if found > newest => {
            return Err(migration::newer_error(found, database));
        }
        Some((found, _)) if found < newest => SchemaState::Older { found, newest },
        Some((found, _)) => SchemaState::Current { version: found },
    })
}

async fn count_sessions(client: &Object) -> Result<u64, PgError> {
    let row = client.query_one("SELECT count(*) FROM session", &[]).await?;
    Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default())
}
