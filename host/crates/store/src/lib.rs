//! Everything that outlives a process: sessions, approvals, the audit of every decision and call,
//! and the data of plugins (state, timers, messages and memories).
//!
//! Each noun is a module: a trait, and the types that it takes and returns. [`HostStore`] bundles
//! one of each, so another database can take SQLite's place. Its methods are async, because their
//! callers are; only the audit has a writing side ([`AuditLog`]) with a thread of its own.
//!
//! `sqlite` implements all of them in one private folder. It contains `store.sqlite3` and, next to
//! it, the key and the head of the audit. Several processes may use a folder at the same time.
//! `postgres` implements them in a database on a server, for several machines; the key and the head
//! stay in a folder of each. No other crate names a database or uses SQL. Opening a store only
//! checks the folder. The database itself is opened when it is first needed, and by the audit's
//! writer, because no command should wait for it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
//! assert!(store.audit.verify(None).await?.is_intact());
//! # Ok(())
//! # }
//! ```
//!
//! Suggested reading order: [`HostStore`], [`sessions`], [`kept_results`], [`approvals`],
//! [`questions`], [`audit`], [`state`], [`tasks`], [`timers`], [`notices`], [`presence`], [`memories`],
//! [`connections`], [`users`], [`idempotency`].

pub mod approvals;
pub mod audit;
pub mod connections;
pub mod idempotency;
pub mod kept_results;
pub mod memories;
pub mod notices;
pub mod presence;
pub mod questions;
pub mod sessions;
mod sql_integer;
pub mod state;
pub mod tasks;
pub mod timers;
pub mod users;

mod address;
mod clock;
pub mod database;
mod database_report;
mod error;
#[cfg(feature = "postgres")]
mod postgres;
mod private_files;
mod process;
mod sqlite;
mod store;
mod text_index;

#[cfg(test)]
mod tests;

pub use address::DatabaseAddress;
pub use approvals::{ApprovalStore, SessionApproval};
pub use audit::{
    ArgumentsHash, AuditEffect, AuditEntry, AuditError, AuditFilter, AuditGrant, AuditKind,
    AuditLog, AuditProblem, AuditRecord, AuditStore, AuditVerification, AuditWriter,
};
pub use connections::{
    ConnectionStatus, ConnectionStore, NewConnection, SealedTokens, StoredConnection,
};
pub use error::StoreError;
pub use idempotency::{IdempotencyKey, IdempotencyStore, KeyState, KeyedReply, KnownKey};
pub use kept_results::{KeptResultLookup, KeptResultStore, NewKeptResult};
pub use memories::{
    EmbeddingVector, MemoryCriterion, MemoryMatch, MemoryQuery, MemoryQueryResult, MemorySelection,
    MemoryStore, NewMemory, StoredMemory, StoredMemoryKind, VisibleTurns,
};
pub use notices::{NoticeBatch, NoticeListener, NoticeStore};
pub use presence::{OpenSession, SessionClaim, SessionPresence};
pub use questions::{AnswerResult, QuestionStore, StoredAnswer, StoredQuestion};
pub use sessions::{
    NewRecord, NewSession, SessionFilter, SessionSearchMatch, SessionStore, SnippetPiece,
    StoredRecord, StoredSession, StoredUsage,
};
pub use state::{PersistentStateStore, StateOwner};
pub use store::HostStore;
pub use tasks::{NewTask, StoredTask, TaskEnd, TaskState, TaskStore};
pub use timers::{PersistentTimerStore, TimerClaim};
pub use users::{CallLimit, UserStore, UserUsage};
