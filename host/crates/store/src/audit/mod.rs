//! The audit: a log of every decision, every call and every change of what is allowed, in which no
//! record can be changed, removed, added or moved without a trace.
//!
//! Each record is stored with a keyed hash over the hash before it, its number and its text, so
//! every record vouches for all before it. The file `audit.head` says how far the log goes, sealed
//! with the same key, so a log whose end is missing is noticed too.
//!
//! **What is noticed:** whatever is done to database, head or key by somebody who has not got the
//! key. **What is not:** what somebody does who has it, or who puts the whole folder back to an
//! earlier state, or the head alone, and cuts the log between there and now. Against these, keep the
//! head that [`Audit::verify`] returns in another place and give it to the next check.
//!
//! **What durable means.** When somebody was told that the log is [settled](AuditLog::settled), every
//! record that it had taken is on the disk, as far as the disk keeps what it says, and so is whatever
//! else the store had written before; all who ask at one moment share one wait for the disk. A record
//! that was only [appended](AuditLog::append) outlives the process some milliseconds later, and a
//! failure of the power when somebody asks next, at the latest about a second later or at the end of
//! the program.
//!
//! **What a crash may leave.** The head names only what is on the disk, so neither a process that is
//! killed, a full disk nor a failure of the power leaves a log that ends before its head (see
//! `head.rs`): nothing is reported.
//!
//! A log that does not end as it should is continued behind a record that says so, and stays broken
//! at that place for every later check, also when the place itself has been pruned.
//!
//! Suggested reading order: [`record`], `link.rs`, `head.rs`, `chain.rs`, [`log`], `writer.rs`,
//! [`verify`].

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
mod writer;

use std::path::Path;

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

/// Whether a log was ever begun in a folder: its key is made after the database, and outlives it.
pub(crate) fn was_begun(folder: &Path) -> bool {
    folder.join(key::FILE).is_file()
}

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
