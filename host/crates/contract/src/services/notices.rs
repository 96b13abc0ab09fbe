//! What plugins tell the person beside their answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    call::CallContext,
    name::{PluginName, ToolId},
};

/// Whom a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// The conversation that it belongs to, now or when it goes on.
    Conversation,
    /// The user: that conversation if it is open, else any other.
    User,
}

/// A message to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Who says it: a plugin, or a tool of the host.
    pub plugin: PluginName,
    /// The session that it belongs to.
    pub session_id: String,
    /// What is shown; untrusted.
    pub text: String,
    /// What is said aloud; untrusted.
    pub speech: Option<String>,
    /// Whom it is for.
    pub audience: Audience,
    /// It comes later than it should have.
    pub late: bool,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// From 0 to 1, where that is known.
    pub part: Option<f64>,
    /// A few words; untrusted.
    pub message: Option<String>,
}

/// Longest message, shown and said together, in bytes. What is gathered into one is no longer either,
/// and whoever passes a message on takes one of this length.
pub const NOTICE_BYTES_MAX: usize = 64 << 10;

/// When a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As soon as somebody is there.
    AtOnce,
    /// After so long, in one message with what the same plugin says until then to the same people.
    Gathered(Duration),
}

/// A message can neither be shown nor kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// What is being gathered is as long as a message may be; later there is room again.
    #[error("{NOTICE_BYTES_MAX} bytes of messages wait already")]
    Full,
    /// Messages cannot be kept; for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// Passes messages on to the person.
pub trait Notices: Send + Sync {
    /// Shows a message, or keeps it until somebody is there. It may block.
    ///
    /// # Errors
    ///
    /// It can neither be shown nor kept. See [`NoticeError`].
    fn notify(&self, notice: Notice, delivery: Delivery) -> Result<(), NoticeError>;

    /// Shows how far a running call has come. It does not block.
    fn progress(&self, call: &CallContext, tool: &ToolId, progress: Progress);
}

/// What came of opening a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The browser has it.
    Browser,
    /// The person was shown the address.
    Shown,
}

/// Opens pages in the user's browser.
pub trait Opener: Send + Sync {
    /// Opens an http or https address, or shows it. It may block for a moment.
    fn open(&self, url: &str) -> Opened;
}
