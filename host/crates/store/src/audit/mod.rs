//! The audit: a log of every decision, every call and every policy change, in which no record can
//! be changed, removed, added or moved without a trace.
//!
//! Each record is stored with a keyed hash over the previous hash, its number and its text, so
//! every record vouches for all records before it. The file `audit.head` records how far the log
//! goes. It is sealed with the same key, so a missing end of the log is detected too.
//!
//! **What is detected:** any change to the database, the key or the head that is made without the
//! key. **What is not:** changes that are made with the key, and a rollback: the whole folder, or
//! the head alone, is put back to an earlier state and the records written since are cut off. To
//! detect these, keep the head that [`AuditStore::verify`] returns in another place, and pass it to
//! the next check.
//!
//! **What durable means.** When [`AuditLog::wait_until_durable`] succeeds, every accepted record is
//! on the disk, as far as the disk keeps its promises, and so is everything else that the store
//! wrote before. Concurrent callers share one wait for the disk. A record that was only
//! [appended](AuditLog::append) survives the end of the process some milliseconds later. It
//! survives a power failure after the next wait for the disk, about a second later at the latest,
//! or at the end of the program.
//!
//! **What a crash may leave.** The head only names records that are on the disk. So a killed
//! process, a full disk or a power failure never leaves a log that ends before its head (see
//! `head.rs`), and no problem is reported.
//!
//! A log that does not end as it should is continued after a record of the damage. Every later
//! check reports the damage at that place, even after the place itself has been pruned.
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

mod chain;
mod head;
mod key;
mod link;
mod prune;
mod remark;
mod row;
mod size_limits;
mod walk;
mod writer;

use std::path::Path;

use crate::{database, error::StoreError, store::HostStore};

pub use effect::AuditEffect;
pub use filter::AuditFilter;
pub use log::{AuditError, AuditLog};
pub use problem::AuditProblem;
pub use read::{AuditEntry, AuditEntryReader};
pub use record::{ArgumentsHash, AuditKind, AuditRecord, HostUser, RecordVersion};
pub use verify::AuditVerification;

/// The table of the log.
pub(crate) const TABLE: &str = "
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
";

/// Whether a log was ever begun in a folder. The key is created after the database, and outlives
/// it.
pub(crate) fn has_existing_log(folder: &Path) -> bool {
    folder.join(key::FILE).is_file()
}

/// The audit as its readers see it.
#[derive(Debug, Clone, Copy)]
pub struct AuditStore<'s> {
    store: &'s HostStore,
}

impl<'s> AuditStore<'s> {
    pub(crate) fn new(store: &'s HostStore) -> Self {
        Self { store }
    }

    /// Returns the records that pass a filter. Pages are read on demand, so records that are
    /// written meanwhile may be included.
    pub fn read_records(self, filter: AuditFilter) -> AuditEntryReader<'s> {
        AuditEntryReader::new(self.store, filter)
    }

    /// Checks the whole log, and that it still contains the head of an earlier check.
    ///
    /// # Errors
    ///
    /// The database, the key or the head cannot be read, or the text is not a head. Damage to the
    /// log is not an error; it is reported in the result.
    pub fn verify(self, expected_head: Option<&str>) -> Result<AuditVerification, StoreError> {
        self.store.with_connection(|connection| {
            verify::verify_log(connection, self.store.folder(), expected_head)
        })
    }

    /// Removes the records before a time, in milliseconds since 1970, and returns their number.
    ///
    /// A record of the removal takes their place, so the rest can still be checked.
    ///
    /// # Errors
    ///
    /// The database, the key or the head cannot be read or written. Part of a long log may have
    /// been removed by then.
    pub fn prune(self, before_ms: u64) -> Result<u64, StoreError> {
        self.store.with_connection(|connection| {
            let removed = prune::prune_records(connection, self.store.folder(), before_ms)?;
            if removed > 0 {
                database::truncate_wal(connection);
            }
            Ok(removed)
        })
    }
}
