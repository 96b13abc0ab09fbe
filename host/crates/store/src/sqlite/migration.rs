//! The schema versions of the database, each made from the one before.
//!
//! A released step is never changed; a change to the schema is a new step. The number of steps
//! taken is stored in the database itself (`user_version`).

use rusqlite::{Connection, TransactionBehavior};

use super::{
    approvals, audit, connections, idempotency, memories, notices, presence, questions, sessions,
    state, tasks, timers, users,
};

/// Every step, oldest first. A module that needs a table adds its own step.
pub(crate) const STEPS: [&[&str]; 14] = [
    &[audit::TABLE],
    &[approvals::TABLE],
    &[sessions::TABLES],
    &[state::TABLES],
    &[timers::TABLE],
    &[notices::TABLE],
    &[presence::TABLE],
    &[memories::TABLES],
    &[sessions::USER_COLUMNS, sessions::KEPT_RESULTS_TABLE, approvals::TABLE_WITH_USER],
    &[questions::TABLE],
    &[connections::TABLE],
    &[tasks::TABLE],
    &[users::TABLES],
    &[idempotency::TABLE],
];

/// The newest schema version.
pub(crate) const NEWEST: i64 = STEPS.len() as i64;

/// Returns the schema version of a database; 0 for an empty one.
pub(crate) fn read_schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", (), |row| row.get(0))
}

/// Runs the steps that a database has not taken yet. Of several processes, only one runs them.
pub(crate) fn run_migrations(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = usize::try_from(read_schema_version(&transaction)?).unwrap_or(STEPS.len());
    for step in STEPS.iter().skip(version).copied().flatten() {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", NEWEST)?;
    transaction.commit()
}

/// Writes the schema version again.
pub(crate) fn rewrite_schema_version(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", NEWEST)
}
