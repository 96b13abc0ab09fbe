//! Messages to the person, beside the answers of tools.
//!
//! A message reaches the conversation that it belongs to, at once if it is open, else when it goes
//! on. The manifest requests `notify` and the policy grants it.

use std::{error::Error, fmt};

use crate::{ToolError, host};

/// Whom a message is for.
///
/// ```
/// use sallyport_sdk::notify::{Audience, Message};
///
/// assert_eq!(Message::new("Done.").audience, Audience::Conversation);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The conversation that asked; it is kept until that conversation goes on.
    Conversation,
    /// The user, in that conversation if it is open, else in any other of theirs.
    User,
}

/// A message.
///
/// ```
/// use sallyport_sdk::notify::{Audience, Message};
///
/// let message = Message::new("Egg: 0:00").speech("Your egg is done.").to(Audience::User);
/// assert_eq!(message.speech.as_deref(), Some("Your egg is done."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What is shown.
    pub text: String,
    /// What is said aloud, where that is possible.
    pub speech: Option<String>,
    /// Whom it is for.
    pub audience: Audience,
}

impl Message {
    /// Makes a message to the conversation that asked.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), speech: None, audience: Audience::Conversation }
    }

    /// Adds what is said aloud.
    pub fn speech(self, sentence: impl Into<String>) -> Self {
        Self { speech: Some(sentence.into()), ..self }
    }

    /// Says whom it is for.
    pub fn to(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }
}

/// Why a message was not passed on; `?` turns it into the fitting [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, notify::NotifyError};
///
/// assert_eq!(ToolError::from(NotifyError::NotGranted).kind(), "denied");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyError {
    /// It is not granted to this plugin.
    NotGranted,
    /// It is empty or too long.
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// There were too many within a minute.
    TooMany {
        /// How many are allowed.
        reason: String,
    },
    /// It can neither be shown nor kept.
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

/// Passes a message on, or has it kept until somebody is there.
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
/// No grant, an empty message, too many messages, nobody to take it.
pub fn send(message: &Message) -> Result<(), NotifyError> {
    host::notify::send(message)
}
