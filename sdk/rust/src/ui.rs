//! The UI role: a plugin that is the user interface of a session.
//!
//! A UI receives every event and sends commands. The manifest requests `ui` (with `confirm = true`
//! if the UI answers questions) and sets `instance = "session"`; the policy grants it. A UI draws
//! with [`print()`] and [`status`], or serves a page with [`serve`](mod@crate::serve).
//!
//! ```
//! use sallyport_sdk::{testing, ui::{self, Event, Style, Ui}};
//!
//! /// Prints what is said.
//! #[derive(Default)]
//! struct Plain;
//!
//! impl Ui for Plain {
//!     fn on_event(&mut self, event: Event) {
//!         match event {
//!             Event::NewMessage(message) => ui::print(&message.content, Style::Plain),
//!             Event::Line(line) => drop(ui::submit_input(&line)),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! sallyport_sdk::export_plugin!(ui = Plain);
//!
//! # fn main() {
//! testing::grant([testing::Power::Ui]);
//! Plain.on_event(Event::Line("Hello".to_owned()));
//! assert_eq!(testing::commands(), [ui::Command::SubmitInput("Hello".to_owned())]);
//! # }
//! ```

use std::{error::Error, fmt};

use serde_json::Value;

use crate::host;

/// The format of a message.
///
/// ```
/// use sallyport_sdk::ui::Format;
///
/// assert_eq!(Format::Markdown.word(), "markdown");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
}

impl Format {
    /// Returns the name of the format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
        }
    }
}

/// The author of a message.
///
/// ```
/// use sallyport_sdk::ui::Author;
///
/// assert_eq!(Author::Assistant.word(), "assistant");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The host or a plugin, outside the conversation.
    Notice,
}

impl Author {
    /// Returns the name of the author.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Notice => "notice",
        }
    }
}

/// A complete message.
///
/// ```
/// use sallyport_sdk::ui::{Author, Message};
///
/// assert_eq!(Message::new(Author::User, "Hello").origin, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub author: Author,
    /// The text.
    pub content: String,
    /// The format of the text.
    pub format: Format,
    /// The origin of the message, if it does not come from this UI.
    pub origin: Option<String>,
}

impl Message {
    /// Makes a message of plain text, for tests.
    pub fn new(author: Author, content: impl Into<String>) -> Self {
        Self { author, content: content.into(), format: Format::Text, origin: None }
    }
}

/// A call that needs the user's confirmation.
///
/// ```
/// use sallyport_sdk::{prelude::*, ui::CallRequest};
///
/// let request = CallRequest::new(7, "files.remove", json!({ "path": "/notes/a.txt" }));
/// assert_eq!(request.security_warning, None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// The id of the question, for [`confirm`]. A question is answered once.
    pub confirmation_id: String,
    /// The id of the call, which its result has as well.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// What the plugin could do, or why the user is asked.
    pub security_warning: Option<String>,
}

impl CallRequest {
    /// Makes a request without a warning, for tests.
    pub fn new(confirmation_id: impl ToString, tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            confirmation_id: confirmation_id.to_string(),
            call_id: String::new(),
            tool: tool.into(),
            arguments,
            security_warning: None,
        }
    }
}

/// A call that has ended.
///
/// ```
/// use sallyport_sdk::{prelude::*, ui::CallResult};
///
/// let result = CallResult {
///     call_id: "call-1".to_owned(),
///     tool: "clock.get_time".to_owned(),
///     outcome: "completed".to_owned(),
///     data: json!({ "time": "10:15" }),
/// };
/// assert!(result.is_completed());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The id of the call, unique within the session.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// The outcome: `completed`, `failed`, `denied`, `invalid-arguments`, `timed-out` or
    /// `cancelled`.
    pub outcome: String,
    /// The data that the model receives.
    pub data: Value,
}

impl CallResult {
    /// Returns whether the call completed.
    pub fn is_completed(&self) -> bool {
        self.outcome == "completed"
    }
}

/// What the session is doing.
///
/// ```
/// use sallyport_sdk::ui::Activity;
///
/// assert_eq!(Activity::WaitingForApproval.word(), "waiting-for-approval");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activity {
    /// Waiting for input.
    #[default]
    Ready,
    /// Waiting for the model.
    Thinking,
    /// Deciding about calls, or running them.
    Executing,
    /// Waiting for a confirmation.
    WaitingForApproval,
}

impl Activity {
    /// Returns the activity as the contract spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Thinking => "thinking",
            Self::Executing => "executing",
            Self::WaitingForApproval => "waiting-for-approval",
        }
    }
}

/// An event of the session.
///
/// ```
/// use sallyport_sdk::ui::{Activity, Event};
///
/// assert_ne!(Event::StateChanged(Activity::Ready), Event::ReadyForInput);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A message is complete.
    NewMessage(Message),
    /// A piece of the answer, as it arrives.
    Delta(String),
    /// A call needs a confirmation.
    ToolCallRequested(CallRequest),
    /// A question no longer needs an answer. Contains its id.
    ConfirmationClosed(String),
    /// A call has ended.
    ToolCallFinished(CallResult),
    /// The session accepts input.
    ReadyForInput,
    /// The activity of the session has changed.
    StateChanged(Activity),
    /// A line that the user typed, if the host reads a terminal or standard input.
    Line(String),
    /// An event that this version does not know, as JSON.
    Other(Value),
}

/// A plugin that is the user interface of a session. Its value lives as long as the instance, and
/// [`session::with`](crate::session::with) can access it.
pub trait Ui: Default + 'static {
    /// Handles one event.
    fn on_event(&mut self, event: Event);
}

/// A command of a UI to the session. Tests read it with [`testing::commands`](crate::testing).
///
/// ```
/// use sallyport_sdk::ui::Command;
///
/// let answer = Command::Confirm { confirmation_id: "7".to_owned(), approved: false };
/// assert_ne!(answer, Command::Cancel);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start a turn.
    SubmitInput(String),
    /// Answer a question.
    Confirm {
        /// The id of the question.
        confirmation_id: String,
        /// The answer.
        approved: bool,
    },
    /// End the current turn.
    Cancel,
}

/// Why a command was not accepted.
///
/// ```
/// use sallyport_sdk::ui::CommandError;
///
/// assert_eq!(CommandError::NoSuchQuestion.to_string(), "there is no such question any more");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// The policy does not grant this to the plugin.
    NotGranted,
    /// The question does not exist, or is answered already.
    NoSuchQuestion,
    /// The input is empty or too long.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The session accepts no more input at the moment.
    Full {
        /// Why not.
        reason: String,
    },
    /// Another error.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted => f.write_str("this plugin may not do that"),
            Self::NoSuchQuestion => f.write_str("there is no such question any more"),
            Self::Invalid { reason } | Self::Full { reason } | Self::Failed { reason } => {
                f.write_str(reason)
            }
        }
    }
}

impl Error for CommandError {}

/// Submits an input, which starts a turn.
///
/// # Errors
///
/// The policy does not grant it, the input is empty or too long, or the session accepts no more
/// input.
pub fn submit_input(text: &str) -> Result<(), CommandError> {
    host::ui::submit_input(text)
}

/// Answers a question, once.
///
/// ```
/// use sallyport_sdk::{testing, ui::{self, CommandError}};
///
/// testing::grant([testing::Power::Ui]);
/// testing::question(7);
/// assert_eq!(ui::confirm("7", true), Ok(()));
/// assert_eq!(ui::confirm("7", true), Err(CommandError::NoSuchQuestion));
/// ```
///
/// # Errors
///
/// The policy does not grant it, or the question does not exist or is answered already.
pub fn confirm(confirmation_id: &str, approved: bool) -> Result<(), CommandError> {
    host::ui::confirm(confirmation_id, approved)
}

/// Ends the current turn.
///
/// # Errors
///
/// The policy does not grant it, or the session has ended.
pub fn cancel() -> Result<(), CommandError> {
    host::ui::cancel()
}

/// The meaning of a printed text.
///
/// ```
/// use sallyport_sdk::{testing, ui::{self, Style}};
///
/// ui::print("Careful!", Style::Warning);
/// assert_eq!(testing::printed(), [("Careful!".to_owned(), Style::Warning)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Ordinary text.
    Plain,
    /// A heading, or important text.
    Strong,
    /// Secondary text.
    Faint,
    /// A warning.
    Warning,
    /// A failure.
    Failure,
}

/// Prints complete lines, if the host has a screen. Control characters are shown, not interpreted.
///
/// ```
/// use sallyport_sdk::{testing, ui::{self, Style}};
///
/// ui::print("Good morning.", Style::Plain);
/// assert_eq!(testing::printed().len(), 1);
/// ```
pub fn print(text: &str, style: Style) {
    host::ui::print(text, style);
}

/// Shows a status below the printed lines, and replaces the last one; `None` removes it.
///
/// ```
/// use sallyport_sdk::{testing, ui};
///
/// ui::status(Some("thinking"));
/// assert_eq!(testing::status().as_deref(), Some("thinking"));
/// ```
pub fn status(text: Option<&str>) {
    host::ui::status(text);
}
