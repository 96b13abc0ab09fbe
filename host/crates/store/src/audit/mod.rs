//! The audit: a log of every decision, every call and every change of what is allowed, in which no
//! record can be changed, removed, added or moved without a trace.
//!
//! Each record is stored with a keyed hash over the hash before it, its number and its text, so
//! every record vouches for all before it. The file `audit.head` says how far the log goes, sealed
//! with the same key, so a log whose end is missing is noticed too.
//!
//! **What is noticed:** whatever is done to database, head or key by somebody who has not got the
//! key. **What is not:** what somebody does who has it, or who puts the whole folder back to an
//! earlier state. Against these, keep the head that [`Audit::verify`] returns in another place and
//! give it to the next check.
//!
//! **What a crash may leave.** A process that is killed leaves whole commits, and a head that the
//! log fits (see `head.rs`): nothing is reported. When the power fails, the system may lose the
//! commits of the last moments and keep the head that names them. That looks like a log that was
//! cut, and is reported as one, since nobody can tell the two apart.
//!
//! A log that does not end as it should is continued behind a record that says so, and stays broken
//! at that place for every later check, also when the place itself has been pruned.
//!
//! Suggested reading order: [`record`], `link.rs`, `head.rs`, `chain.rs`, [`log`], [`verify`].

pub mod effect;
pub mod filter;
pub mod log;
pub mod problem;
pub mod read;
pub mod record;
pub mod verify;

mod bound;
mod chain;
mod head;
mod key;
mod link;
mod prune;
mod remark;
mod row;
mod walk;

use crate::{database, error::StoreError, store::Store};

pub use effect::AuditEffect;
pub use filter::AuditFilter;
pub use log::{AuditError, AuditLog};
pub use problem::Problem;
pub use read::{Entry, Records};
pub use record::{ArgumentsHash, AuditKind, AuditRecord, RecordVersion, Who};
pub use verify::Verification;

/// The table of the log.
pub(crate) const TABLE: &str = "
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
";

/// The audit as its readers see it.
#[derive(Debug, Clone, Copy)]
pub struct Audit<'s> {
    store: &'s Store,
}

impl<'s> Audit<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Returns the records that pass a filter, read as they are asked for. What is written
    /// meanwhile may be among them.
    pub fn records(self, filter: AuditFilter) -> Records<'s> {
        Records::new(self.store, filter)
    }

    /// Checks the whole log, and that it still holds the head of an earlier check.
    ///
    /// # Errors
    ///
    /// The database, the key or the head cannot be read, or the text is no head. What is wrong
    /// with the log is no error: it is the answer.
    pub fn verify(self, expected_head: Option<&str>) -> Result<Verification, StoreError> {
        self.store.with(|connection| verify::verify(connection, self.store.folder(), expected_head))
    }

    /// Removes the records before a moment, in milliseconds since 1970, and returns how many there
    /// were. A record that says so takes their place, and the rest can be checked as before.
    ///
    /// # Errors
    ///
    /// The database, the key or the head cannot be read or written. Of a long log, a part may be
    /// removed by then.
    pub fn prune(self, before_ms: u64) -> Result<u64, StoreError> {
        self.store.with(|connection| {
            let removed = prune::prune(connection, self.store.folder(), before_ms)?;
            if removed > 0 {
                database::forget_log_of_writes(connection);
            }
            Ok(removed)
        })
    }
}
