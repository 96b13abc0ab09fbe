//! Messages to the user, independent of the results of tools.
//!
//! A message reaches the conversation that it belongs to: immediately if the conversation is open,
//! otherwise when it continues. The manifest requests `notify` and the policy grants it.

use std::{error::Error, fmt};

use crate::ToolError;

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
    host::send(message)
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    use super::{Audience, Message, NotifyError};
    use crate::guest::{bindings::powers::sallyport::plugin::notify as wit, message};

    pub(crate) fn send(message: &Message) -> Result<(), NotifyError> {
        let audience = match message.audience {
            Audience::Conversation => wit::Audience::Conversation,
            Audience::User => wit::Audience::User,
        };
        let Message { text, speech, .. } = message.clone();
        Ok(wit::send(&wit::Message { text, speech, audience, extra: None })?)
    }

    impl From<wit::Error> for NotifyError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::NotGranted => Self::NotGranted,
                wit::Error::Invalid(reason) => Self::Invalid { reason },
                wit::Error::TooMany(reason) => Self::TooMany { reason },
                wit::Error::Unavailable(reason) => Self::Unavailable { reason },
                wit::Error::Other(other) => Self::Unavailable { reason: message(other) },
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::cell::RefCell;

    use super::{Message, NotifyError};
    use crate::testing::{Power, is_granted, nothing_in};

    thread_local! {
        static NOTICED: RefCell<Vec<Message>> = RefCell::default();
    }

    /// Returns the messages to the user that were sent since the last call.
    ///
    /// ```
    /// use sallyport_sdk::{notify::{self, Message}, testing};
    ///
    /// testing::grant([testing::Power::Notify]);
    /// notify::send(&Message::new("Hello")).unwrap();
    /// assert_eq!(testing::noticed(), [Message::new("Hello")]);
    /// assert_eq!(testing::noticed(), []);
    /// ```
    pub fn noticed() -> Vec<Message> {
        NOTICED.take()
    }

    pub(crate) fn send(message: &Message) -> Result<(), NotifyError> {
        if !is_granted(Power::Notify) {
            return Err(NotifyError::NotGranted);
        }
        if let Some(reason) = nothing_in(&message.text) {
            return Err(NotifyError::Invalid { reason });
        }
        NOTICED.with_borrow_mut(|noticed| noticed.push(message.clone()));
        Ok(())
    }
}
