//! The role of a UI: a plugin that is the user's side of a session.
//!
//! It receives every event and sends commands. The manifest requests `ui` (with `confirm = true`
//! when it shall answer questions) and says `instance = "session"`; the policy grants it. It draws
//! through [`print()`] and [`status`], or serves a page through [`serve`](mod@crate::serve).
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

/// How a text is written.
///
/// ```
/// use sallyport_sdk::ui::Format;
///
/// assert_eq!(Format::Markdown.word(), "markdown");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As it is.
    Text,
    /// Markdown.
    Markdown,
}

impl Format {
    /// Returns the format in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
        }
    }
}

/// Whose words a message holds.
///
/// ```
/// use sallyport_sdk::ui::Author;
///
/// assert_eq!(Author::Assistant.word(), "assistant");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The person's.
    User,
    /// The model's.
    Assistant,
    /// The host's or a plugin's, beside the conversation.
    Notice,
}

impl Author {
    /// Returns the author in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Notice => "notice",
        }
    }
}

/// A message that is whole.
///
/// ```
/// use sallyport_sdk::ui::{Author, Message};
///
/// assert_eq!(Message::new(Author::User, "Hello").origin, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Whose words.
    pub author: Author,
    /// What they say.
    pub content: String,
    /// How it is written.
    pub format: Format,
    /// Where it came from, when it did not come from this UI.
    pub origin: Option<String>,
}

impl Message {
    /// Makes a message of plain text; tests hand these out.
    pub fn new(author: Author, content: impl Into<String>) -> Self {
        Self { author, content: content.into(), format: Format::Text, origin: None }
    }
}

/// A call that somebody has to agree to.
///
/// ```
/// use sallyport_sdk::{prelude::*, ui::CallRequest};
///
/// let request = CallRequest::new(7, "files.remove", json!({ "path": "/notes/a.txt" }));
/// assert_eq!(request.security_warning, None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// Names the question in [`confirm`]; it is answered once.
    pub confirmation_id: String,
    /// The call, by the name that its result has as well.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What the plugin could do, or why somebody is asked.
    pub security_warning: Option<String>,
}

impl CallRequest {
    /// Makes a request without a warning; tests hand these out.
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
    /// The call, unique within the session.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// `completed`, `failed`, `denied`, `invalid-arguments`, `timed-out` or `cancelled`.
    pub outcome: String,
    /// What the model reads of it.
    pub data: Value,
}

impl CallResult {
    /// Tells whether the call did what it should.
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
    /// Deciding about calls or making them.
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

/// Something that happened.
///
/// ```
/// use sallyport_sdk::ui::{Activity, Event};
///
/// assert_ne!(Event::StateChanged(Activity::Ready), Event::ReadyForInput);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A message is whole.
    NewMessage(Message),
    /// A piece of the answer, while it arrives.
    Delta(String),
    /// A call needs a confirmation.
    ToolCallRequested(CallRequest),
    /// A question needs no answer any more.
    ConfirmationClosed(String),
    /// A call has ended.
    ToolCallFinished(CallResult),
    /// The session takes input.
    ReadyForInput,
    /// The session now does something else.
    StateChanged(Activity),
    /// A line that the person typed where the host reads a terminal or standard input.
    Line(String),
    /// Something that only later versions know.
    Other(Value),
}

/// A plugin that is the user's side of a session. Its value lives as long as the instance and can
/// also be reached by [`session::with`](crate::session::with).
pub trait Ui: Default + 'static {
    /// Takes one event.
    fn on_event(&mut self, event: Event);
}

/// What a UI tells the session; tests read it from [`testing::commands`](crate::testing).
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
        /// Which one.
        confirmation_id: String,
        /// The answer.
        approved: bool,
    },
    /// End the present turn.
    Cancel,
}

/// Why a command was not taken.
///
/// ```
/// use sallyport_sdk::ui::CommandError;
///
/// assert_eq!(CommandError::NoSuchQuestion.to_string(), "there is no such question any more");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// The policy does not let this plugin do it.
    NotGranted,
    /// There is no such question, or it is answered already.
    NoSuchQuestion,
    /// It is empty or too long.
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// The session takes no more just now.
    Full {
        /// Why not.
        reason: String,
    },
    /// Something else went wrong.
    Failed {
        /// What.
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

/// Starts a turn.
///
/// # Errors
///
/// No grant, an input that is empty or too long, a session that takes no more.
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
/// No grant, a question that does not exist or is answered.
pub fn confirm(confirmation_id: &str, approved: bool) -> Result<(), CommandError> {
    host::ui::confirm(confirmation_id, approved)
}

/// Ends the present turn.
///
/// # Errors
///
/// No grant, a session that has ended.
pub fn cancel() -> Result<(), CommandError> {
    host::ui::cancel()
}

/// What a text means that is drawn.
///
/// ```
/// use sallyport_sdk::{testing, ui::{self, Style}};
///
/// ui::print("Careful!", Style::Warning);
/// assert_eq!(testing::printed(), [("Careful!".to_owned(), Style::Warning)]);
/// ```
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

/// Prints whole lines where the host has a screen. Control characters are shown, not obeyed.
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

/// Shows words in place of the last status, below what was printed; `None` removes it.
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
