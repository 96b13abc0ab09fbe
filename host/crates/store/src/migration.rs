//! The forms that the database has had, each made from the one before.
//!
//! A step that was ever released is never changed; what is new is a further step. The number of
//! steps taken stands in the database itself (`user_version`).

use rusqlite::{Connection, TransactionBehavior};

use crate::{approvals, audit, memories, notices, presence, sessions, state, timers};

/// Every step, oldest first. A noun that needs a table brings its own step.
pub(crate) const STEPS: [&str; 8] = [
    audit::TABLE,
    approvals::TABLE,
    sessions::TABLES,
    state::TABLES,
    timers::TABLE,
    notices::TABLE,
    presence::TABLE,
    memories::TABLES,
];

/// The number of the newest form.
pub(crate) const NEWEST: i64 = STEPS.len() as i64;

/// Returns the number of a database's form; 0 for an empty one.
pub(crate) fn form(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", (), |row| row.get(0))
}

/// Takes the steps that a database has not taken yet. Of several processes, one takes them.
pub(crate) fn run(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken = usize::try_from(form(&transaction)?).unwrap_or(STEPS.len());
    for step in STEPS.iter().skip(taken) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", NEWEST)?;
    transaction.commit()
}

/// Writes the number of the form once more.
pub(crate) fn restate(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", NEWEST)
}
