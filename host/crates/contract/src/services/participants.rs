//! Connections of plugins that take part in a session: listeners, which bring input, and UIs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{name::PluginName, toolbox::ApprovalAnswer};

/// The origin of an input that the user did not type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputOrigin {
    /// The plugin that brought it.
    pub plugin: PluginName,
    /// The author of the words, as the plugin reports it; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The connection that receives the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

/// Why an input or an answer was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    /// It is empty or too long; the message is one that a plugin may read.
    #[error("{0}")]
    Invalid(String),
    /// Too much is waiting already.
    #[error("too much is waiting already")]
    Full,
    /// The question does not exist or is already answered.
    #[error("there is no such question")]
    NoSuchQuestion,
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
}

/// A listener's way into a session. It does not block.
pub trait SessionInbox: Send + Sync {
    /// Submits an input.
    ///
    /// # Errors
    ///
    /// The input is rejected.
    fn submit_input(&self, text: String, origin: InputOrigin) -> Result<(), SubmissionError>;
}

/// A UI's connection to a session. It does not block.
pub trait UiSession: Send + Sync {
    /// Starts a turn.
    ///
    /// # Errors
    ///
    /// The input is rejected.
    fn submit_input(&self, text: String) -> Result<(), SubmissionError>;

    /// Answers a question that was shown to this UI.
    ///
    /// # Errors
    ///
    /// The question does not exist or is already answered.
    fn answer_question(
        &self,
        confirmation_id: u64,
        answer: ApprovalAnswer,
    ) -> Result<(), SubmissionError>;

    /// Ends the current turn.
    ///
    /// # Errors
    ///
    /// The session has ended.
    fn cancel_turn(&self) -> Result<(), SubmissionError>;

    /// Prints whole lines; untrusted.
    fn print_text(&self, text: &str, style: TextStyle);

    /// Replaces the status text; untrusted.
    fn set_status(&self, text: Option<&str>);
}

/// The meaning of a text that a UI draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// Ordinary text.
    Plain,
    /// A heading or important text.
    Strong,
    /// Secondary text.
    Faint,
    /// A warning.
    Warning,
    /// A failure.
    Failure,
}
