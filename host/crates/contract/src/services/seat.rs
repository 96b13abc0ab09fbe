//! Where plugins sit that take part in a session: listeners that bring input, and UIs.

use serde::{Deserialize, Serialize};

use crate::{name::PluginName, toolbox::Answer};

/// Where an input came from, when the person did not type it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The plugin that brought it.
    pub plugin: PluginName,
    /// Whose words they are, as the plugin says; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The connection that an answer goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

/// Why something was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// It is empty or too long; in words that a plugin may read.
    #[error("{0}")]
    Invalid(String),
    /// Too much waits already.
    #[error("too much is waiting already")]
    Full,
    /// There is no such question, or it is answered already.
    #[error("there is no such question")]
    NoSuchQuestion,
    /// There is no session any more.
    #[error("the session has ended")]
    Ended,
}

/// The way from a listener into a session. It does not block.
pub trait Inbox: Send + Sync {
    /// Hands in an input.
    ///
    /// # Errors
    ///
    /// It is not taken.
    fn submit(&self, text: String, origin: Origin) -> Result<(), SeatError>;
}

/// A UI's place at a session. It does not block.
pub trait Seat: Send + Sync {
    /// Starts a turn.
    ///
    /// # Errors
    ///
    /// It is not taken.
    fn submit(&self, text: String) -> Result<(), SeatError>;

    /// Answers a question that was shown to this UI.
    ///
    /// # Errors
    ///
    /// There is no such question, or it is answered.
    fn confirm(&self, confirmation_id: u64, answer: Answer) -> Result<(), SeatError>;

    /// Ends the present turn.
    ///
    /// # Errors
    ///
    /// The session has ended.
    fn cancel(&self) -> Result<(), SeatError>;

    /// Draws whole lines; untrusted.
    fn print(&self, text: &str, style: Style);

    /// Shows words in place of the last status; untrusted.
    fn status(&self, text: Option<&str>);
}

/// What a text means that a UI draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Nothing special.
    Plain,
    /// A heading or something that matters.
    Strong,
    /// Beside the point.
    Faint,
    /// Something to look out for.
    Warning,
    /// A failure.
    Failure,
}
