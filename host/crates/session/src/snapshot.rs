//! The state of a session at one moment, for a front end that joins late or exports the session.

use sallyport_contract::ApprovalRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{event::SessionActivity, journal::JournalRecord};

/// The state of a session at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSnapshot {
    /// What the session does.
    pub activity: SessionActivity,
    /// Its records in order, including those of earlier programs. [`restore_session`] and
    /// [`history`](crate::history) turn them into a conversation, its turns and its usage.
    ///
    /// [`restore_session`]: crate::restore_session
    pub records: Vec<JournalRecord>,
    /// The questions that wait for an answer, the oldest first.
    pub questions: Vec<OpenQuestion>,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenQuestion {
    /// Identifies the question in the answer.
    pub confirmation_id: u64,
    /// The details to show to the user.
    #[serde(flatten)]
    pub request: ApprovalRequest,
}
