//! Approvals for the rest of a session, so that the user is not asked the same question twice.
//!
//! An approval is looked up by its whole key. The key contains everything that the user was shown:
//! a different user, session, plugin, component, tool, subject or rule is a different question.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// Longest time that an approval is valid. To the user who answered, a session that is resumed
/// after a month is a new one.
pub(crate) const AGE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

/// Longest text of an approval. No user reads a longer subject.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Something that the user allowed for the rest of a session, or that is being asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionApproval {
    /// The user who allowed it, or for whom it is asked.
    pub user: String,
    /// The session.
    pub session_id: String,
    /// The plugin's name.
    pub plugin: String,
    /// Digest of the component, in hexadecimal.
    pub digest: String,
    /// The tool's name within its plugin.
    pub tool: String,
    /// The subject of the question: the call itself, or one access that it makes.
    pub subject: String,
    /// Identifies the rule that asks.
    pub rule: String,
    /// When it was allowed or is asked for, in milliseconds since 1970. Not part of the key.
    pub at_ms: u64,
}

/// The approvals of all sessions. Every method fails if the database cannot be used.
#[async_trait]
pub trait ApprovalStore: Send + Sync {
    /// Stores an approval and replaces an older one with the same key. Also removes the approvals
    /// that are older than 30 days at `approval.at_ms`.
    ///
    /// # Errors
    ///
    /// A text is too long.
    async fn store_approval(&self, approval: &SessionApproval) -> Result<(), StoreError>;

    /// Returns whether exactly this was allowed at `wanted.at_ms`, or at most 30 days before it.
    async fn is_approved(&self, wanted: &SessionApproval) -> Result<bool, StoreError>;

    /// Removes every approval of a session, and returns their number.
    async fn forget_session(&self, session_id: &str) -> Result<usize, StoreError>;

    /// Removes the approvals that are older than 30 days at a time, and returns their number. The
    /// time is in milliseconds since 1970.
    async fn prune(&self, now_ms: u64) -> Result<usize, StoreError>;
}

impl SessionApproval {
    /// # Errors
    ///
    /// A text is too long.
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        let texts = [
            ("the name of a user", &self.user),
            ("a session", &self.session_id),
            ("a plugin's name", &self.plugin),
            ("a digest", &self.digest),
            ("a tool's name", &self.tool),
            ("a subject", &self.subject),
            ("a rule", &self.rule),
        ];
        texts.into_iter().try_for_each(|(what, text)| check_length(what, text, TEXT_BYTES_MAX))
    }
}
