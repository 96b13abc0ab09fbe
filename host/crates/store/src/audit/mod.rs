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
//! `audit/chain/head.rs`), and no problem is reported.
//!
//! A log that does not end as it should is continued after a record of the damage. Every later
//! check reports the damage at that place, even after the place itself has been pruned.
//!
//! Suggested reading order: [`record`], [`log`], `writer.rs`, in `chain/`: `link.rs`, `head.rs`,
//! then in `sqlite/audit/`: `chain.rs`, `verify.rs`.

pub mod effect;
pub mod filter;
pub mod log;
pub mod problem;
pub mod record;

pub(crate) mod chain;
mod size_limits;
mod writer;

use sallyport_contract::async_trait;
use serde::Serialize;

use crate::error::StoreError;

pub use effect::{AuditEffect, AuditGrant};
pub use filter::AuditFilter;
pub use log::{AuditError, AuditLog};
pub use problem::AuditProblem;
pub use record::{ArgumentsHash, AuditKind, AuditRecord, HostUser, RecordVersion};

/// A record as it is stored in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number.
    pub seq: u64,
    /// Its hash, in hexadecimal. Only `verify` checks it.
    pub hash: String,
    /// The record as one line of JSON. After tampering it may contain anything.
    pub text: String,
    /// The parsed record; `None` if the line is not a record, or is of an unknown version. Such an
    /// entry passes every filter, because breaking a record must not hide it.
    pub record: Option<AuditRecord>,
}

/// The result of checking the whole log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditVerification {
    /// How many records the log contains.
    pub records: u64,
    /// How many records were removed from the start of the log by pruning.
    pub pruned: u64,
    /// The last record, written `NUMBER:HASH`. Kept elsewhere and passed to a later check, it
    /// detects any change up to this record, even one made with the key.
    pub head: String,
    /// The problems, in the order of the log. Empty if the log is intact.
    pub problems: Vec<AuditProblem>,
}

impl AuditVerification {
    /// Whether the log is intact.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty()
    }
}

/// The audit as its readers see it. Every method fails if the database cannot be used.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Returns the records that pass a filter. Records that are written meanwhile may be included.
    /// All of them are in memory, so read a long log in pages: with a limit, each after the last
    /// number of the one before.
    async fn read_records(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError>;

    /// Checks the whole log, and that it still contains the head of an earlier check. Damage to the
    /// log is not an error; it is reported in the result.
    ///
    /// # Errors
    ///
    /// The key or the head cannot be read, or the text is not a head.
    async fn verify(&self, expected_head: Option<&str>) -> Result<AuditVerification, StoreError>;

    /// Removes the records before a time, in milliseconds since 1970, and returns their number.
    ///
    /// A record of the removal takes their place, so the rest can still be checked.
    ///
    /// # Errors
    ///
    /// The key or the head cannot be read or written. Part of a long log may have been removed by
    /// then.
    async fn prune(&self, before_ms: u64) -> Result<u64, StoreError>;

    /// Returns what writes to the log, for the thread of one [`AuditLog`].
    fn writer(&self) -> Box<dyn AuditWriter>;
}

/// Writes to the log. It blocks, because it has a thread of its own, and it opens the database
/// again after a failure.
pub trait AuditWriter: Send {
    /// Adds records to the log, all or none, and returns the problems found in it before. Without
    /// records, it only opens the log. If `is_durable`, the records and all earlier ones are on the
    /// disk when it returns.
    ///
    /// # Errors
    ///
    /// Either nothing was added, or it is unknown whether anything was.
    fn append(&mut self, lines: &[&str], is_durable: bool)
    -> Result<Vec<AuditProblem>, StoreError>;

    /// Waits until every record of the log is on the disk and the log is known to go that far, and
    /// returns the problems found. Follows each durable [`append`](Self::append).
    ///
    /// # Errors
    ///
    /// It is unknown what is on the disk.
    fn sync(&mut self) -> Result<Vec<AuditProblem>, StoreError>;
}
