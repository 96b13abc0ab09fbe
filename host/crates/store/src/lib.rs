//! Everything that outlives a process: sessions, approvals, the audit of every decision and call,
//! and the data of plugins (state, timers, messages and memories).
//!
//! The store is one private folder. It contains `store.sqlite3` and, next to it, the key and the
//! head of the audit. No other crate names the database or uses SQL. Several processes may use a
//! folder at the same time.
//!
//! Opening a store only checks the folder. The database itself is opened when it is first needed,
//! and by the audit's writer on a thread of its own, because no command should wait for it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use sallyport_store::{AuditKind, AuditRecord, HostStore, audit::HostUser};
//!
//! # let parent = tempfile::tempdir()?;
//! # let folder = parent.path().join("store");
//! let store = HostStore::open(&folder)?;
//! let log = store.audit_log();
//! let user = HostUser::from_process("me");
//! log.append(AuditRecord::new(AuditKind::Policy, 1_800_000_000_000, user))?;
//! log.flush(Duration::from_secs(10))?;
//! assert!(store.audit().verify(None)?.is_intact());
//! # Ok(())
//! # }
//! ```
//!
//! Suggested reading order: [`HostStore`], [`sessions`], [`approvals`], [`audit`], [`state`],
//! [`timers`], [`notices`], [`presence`], [`memories`].

pub mod approvals;
pub mod audit;
pub mod memories;
pub mod notices;
pub mod presence;
pub mod sessions;
pub mod state;
pub mod timers;

mod clock;
mod database;
mod error;
mod migration;
mod private_files;
mod process;
mod store;
mod text_index;
mod transaction_error;

#[cfg(test)]
mod tests;

pub use approvals::{ApprovalStore, SessionApproval};
pub use audit::{
    ArgumentsHash, AuditEffect, AuditEntry, AuditEntryReader, AuditError, AuditFilter, AuditKind,
    AuditLog, AuditProblem, AuditRecord, AuditStore, AuditVerification,
};
pub use error::StoreError;
pub use memories::{
    EmbeddingVector, MemoryCriterion, MemoryMatch, MemoryQuery, MemoryQueryResult, MemorySelection,
    MemoryStore, NewMemory, StoredMemory, StoredMemoryKind, VisibleTurns,
};
pub use notices::{NoticeBatch, NoticeStore};
pub use presence::{OpenSession, SessionPresence};
pub use sessions::{
    NewRecord, NewSession, SessionFilter, SessionRecords, SessionSearchMatch, SessionStore,
    SnippetPiece, StoredRecord, StoredSession, StoredUsage,
};
pub use state::{PersistentStateStore, StateOwner};
pub use store::HostStore;
pub use timers::{PersistentTimerStore, TimerClaim};
