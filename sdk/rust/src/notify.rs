//! Messages to the user, independent of the results of tools.
//!
//! A message reaches the conversation that it belongs to: immediately if the conversation is open,
//! otherwise when it continues. The manifest requests `notify` and the policy grants it.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// The recipient of a message.
///
/// ```
/// use sallyport_sdk::notify::{Audience, Message};
///
/// assert_eq!(Message::new("Done.").audience, Audience::Conversation);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The conversation of the call. The message is kept until that conversation continues.
    Conversation,
    /// The user: in that conversation if it is open, otherwise in any other of the user's
    /// conversations.
    User,
}

/// A message to the user.
///
/// ```
/// use sallyport_sdk::notify::{Audience, Message};
///
/// let message = Message::new("Egg: 0:00").speech("Your egg is done.").to(Audience::User);
/// assert_eq!(message.speech.as_deref(), Some("Your egg is done."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The text to show.
    pub text: String,
    /// The sentence to speak, if the session can speak.
    pub speech: Option<String>,
    /// The recipient.
    pub audience: Audience,
}

impl Message {
    /// Makes a message to the conversation of the call.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), speech: None, audience: Audience::Conversation }
    }

    /// Adds a sentence to speak.
    pub fn speech(self, sentence: impl Into<String>) -> Self {
        Self { speech: Some(sentence.into()), ..self }
    }

    /// Sets the recipient.
    pub fn to(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }
}

/// Why a message was not sent. `?` converts it into the matching [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, notify::NotifyError};
///
/// assert_eq!(ToolError::from(NotifyError::NotGranted).kind(), "denied");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyError {
    /// The policy does not grant `notify` to this plugin.
    NotGranted,
    /// The message is empty or too long.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The plugin sent too many messages within a minute.
    TooMany {
        /// How many are allowed.
        reason: String,
    },
    /// The message can neither be shown nor kept.
    Unavailable {
        /// Why not.
        reason: String,
    },
}

impl fmt::Display for NotifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted => f.write_str("this plugin may not send messages to the user"),
            Self::Invalid { reason } => write!(f, "the message cannot be sent: {reason}"),
            Self::TooMany { reason } => write!(f, "there were too many messages: {reason}"),
            Self::Unavailable { reason } => write!(f, "the message did not get through: {reason}"),
        }
    }
}

impl Error for NotifyError {}

impl From<NotifyError> for ToolError {
    fn from(error: NotifyError) -> Self {
        let message = error.to_string();
        match error {
            NotifyError::NotGranted => Self::Denied(message),
            NotifyError::Invalid { .. } => Self::Failed(message),
            NotifyError::TooMany { .. } | NotifyError::Unavailable { .. } => {
                Self::Unavailable(message)
            }
        }
    }
}

/// Sends a message, which is kept until a conversation can show it.
///
/// ```
/// use sallyport_sdk::{notify::{self, Message}, testing};
///
/// testing::grant([testing::Power::Notify]);
/// notify::send(&Message::new("The door bell rang."))?;
/// assert_eq!(testing::noticed(), [Message::new("The door bell rang.")]);
/// # Ok::<(), notify::NotifyError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `notify`, the message is empty or too long, the plugin sent too many
/// messages, or the message can neither be shown nor kept.
pub fn send(message: &Message) -> Result<(), NotifyError> {
    host::notify::send(message)
}
