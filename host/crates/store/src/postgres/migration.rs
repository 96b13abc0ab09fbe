//! The schema versions of the database, each made from the one before.
//!
//! A released step is never changed; a change to the schema is a new step. The number of steps taken
//! is stored in the database itself. Of several machines that start at once, one takes the steps and
//! the others wait for it.

use deadpool_postgres::Object;
use tokio_postgres::error::SqlState;

use super::{
    approvals, audit, connections, error::PgError, holders, idempotency, memories, notices,
    presence, questions, sessions, state, tasks, timers, users,
};
use crate::error::StoreError;

/// Every step, oldest first. A module that needs a table adds its own step.
pub(crate) const STEPS: [&[&str]; 2] = [
    &[
        holders::TABLE,
        audit::TABLES,
        approvals::TABLE,
        sessions::TABLES,
        state::TABLES,
        timers::TABLE,
        notices::TABLE,
        presence::TABLE,
        memories::TABLES,
        questions::TABLE,
        connections::TABLE,
        tasks::TABLE,
    ],
    &[users::TABLES, idempotency::TABLE],
];

/// The newest schema version.
pub(crate) const NEWEST: i64 = STEPS.len() as i64;

/// Held while steps are taken. The number means nothing else.
const LOCK_KEY: i64 = 0x5a11_7907_0000_0001;

/// What the store knows of its database. `copied_home` is a hash of the home that it was filled from.
const STORE_TABLE: &str = "CREATE TABLE IF NOT EXISTS store (
        lone BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (lone),
        version BIGINT NOT NULL,
        id TEXT NOT NULL,
        copied_home TEXT
    )";

/// Brings the database to the newest schema, and returns its random id.
///
/// # Errors
///
/// The database has a newer schema or another encoding, or its user may not change it.
pub(crate) async fn run_migrations(
    client: &mut Object,
    schema: &str,
    database: &str,
) -> Result<String, PgError> {
    match read_version(client).await? {
        Some((version, id)) if version == NEWEST => return Ok(id),
        Some((found, _)) if found > NEWEST => return Err(newer_error(found, database)),
        _ => {}
    }
    check_encoding(client, database).await?;
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK_KEY]).await?;
    transaction.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    transaction.batch_execute(STORE_TABLE).await?;
    let insert = "INSERT INTO store (version, id)
        VALUES (0, replace(gen_random_uuid()::text, '-', '')) ON CONFLICT DO NOTHING";
    transaction.execute(insert, &[]).await?;
    let row = transaction.query_one("SELECT version, id FROM store", &[]).await?;
    let (version, id): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
    if version > NEWEST {
        return Err(newer_error(version, database));
    }
    let taken = usize::try_from(version).unwrap_or(STEPS.len());
    let missing: Vec<&str> =
        STEPS.iter().skip(taken).flat_map(|step| step.iter().copied()).collect();
    transaction.batch_execute(&missing.concat()).await?;
    transaction.execute("UPDATE store SET version = $1", &[&NEWEST]).await?;
    transaction.commit().await?;
    Ok(id)
}

/// Returns the schema version and the id of a database; `None` for one without a store.
pub(crate) async fn read_version(client: &Object) -> Result<Option<(i64, String)>, PgError> {
    match client.query_opt("SELECT version, id FROM store", &[]).await {
        Ok(None) => Ok(None),
        Ok(Some(row)) => Ok(Some((row.try_get(0)?, row.try_get(1)?))),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Texts of every language need one encoding, and the index of words an order of its own.
async fn check_encoding(client: &Object, database: &str) -> Result<(), PgError> {
    let row = client.query_one("SELECT current_setting('server_encoding')", &[]).await?;
    match row.try_get::<_, String>(0)?.as_str() {
        "UTF8" => Ok(()),
        other => Err(PgError::Store(StoreError::Refused {
            database: database.to_owned(),
            message: format!("its encoding is {other}, and has to be UTF8"),
        })),
    }
}

/// The error of a database with a newer schema.
pub(crate) fn newer_error(found: i64, database: &str) -> PgError {
    PgError::Store(StoreError::NewerSchema { path: database.into(), found, known: NEWEST })
}
