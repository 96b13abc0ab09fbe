//! Presence: which sessions are open now, and in which processes.
//!
//! A process enters a session, sends heartbeats while it runs, and leaves. A killed process counts
//! as having left. A process that hangs counts until its last heartbeat is too old.

use sallyport_contract::async_trait;

use crate::error::StoreError;

/// How often a process should send a heartbeat, in milliseconds. A heartbeat is one small write.
pub const HEARTBEAT_MS: u64 = 10_000;

/// How long a session counts as open after a heartbeat: a busy machine may miss three of them.
pub(crate) const HEARTBEAT_AGE_MS_MAX: u64 = 4 * HEARTBEAT_MS;

/// A session that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// The session.
    pub session_id: String,
    /// The user who has it open.
    pub user: String,
}

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionClaim {
    /// This process has the session open now.
    Claimed,
    /// Another process that runs has it open.
    OpenElsewhere,
}

/// The open sessions. Every method fails if the database cannot be used.
#[async_trait]
pub trait SessionPresence: Send + Sync {
    /// Records that this process has a session open. Also removes the entries of processes that are
    /// gone.
    async fn mark_open(&self, user: &str, session_id: &str, now_ms: u64) -> Result<(), StoreError>;

    /// Records that this process has a session open, unless another process that runs has. Of several
    /// that claim it at the same time, one does. The claim ends with
    /// [`mark_closed`](Self::mark_closed), and with the process.
    ///
    /// A process that was taken for dead and runs on cannot write to the session any more once the
    /// next one has: its records would not follow those that it knows, see
    /// [`StoreError::ConcurrentAppend`].
    async fn claim_session(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError>;

    /// Sends a heartbeat for a session that this process has open. An entry that is missing is made
    /// again as by [`claim_session`](Self::claim_session): the session could not be recorded, or the
    /// process was taken for dead.
    async fn send_heartbeat(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError>;

    /// Records that this process has closed a session.
    async fn mark_closed(&self, session_id: &str) -> Result<(), StoreError>;

    /// Lists the open sessions, each once per user who has it open.
    async fn list_open(&self, now_ms: u64) -> Result<Vec<OpenSession>, StoreError>;

    /// Returns whether any process has a session open.
    async fn is_open(&self, session_id: &str, now_ms: u64) -> Result<bool, StoreError> {
        Ok(self.list_open(now_ms).await?.iter().any(|open| open.session_id == session_id))
    }

    /// Returns whether a user has any session open.
    async fn has_open_session(&self, user: &str, now_ms: u64) -> Result<bool, StoreError> {
        Ok(self.list_open(now_ms).await?.iter().any(|open| open.user == user))
    }
}
