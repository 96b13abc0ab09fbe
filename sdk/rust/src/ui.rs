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
    /// The parts of the warning, as a JSON object, if the host gives them: `plugin`, `version`,
    /// `digest`, `reason`, `permissions`, `access` and `always`.
    pub extra: Option<Value>,
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
            extra: None,
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
    host::submit_input(text)
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
    host::confirm(confirmation_id, approved)
}

/// Ends the current turn.
///
/// # Errors
///
/// The policy does not grant it, or the session has ended.
pub fn cancel() -> Result<(), CommandError> {
    host::cancel()
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
    host::print(text, style);
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
    host::status(text);
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    use super::{CommandError, Style};
    use crate::guest::{
        bindings::powers::sallyport::plugin::{commands as wit, render},
        message,
    };

    pub(crate) fn submit_input(text: &str) -> Result<(), CommandError> {
        let input = wit::UserInput { text: text.to_owned(), attachments: Vec::new(), extra: None };
        Ok(wit::submit_input(&input)?)
    }

    pub(crate) fn confirm(confirmation_id: &str, approved: bool) -> Result<(), CommandError> {
        let no = || wit::Decision::Deny(String::new());
        let decision = if approved { wit::Decision::ApproveOnce } else { no() };
        Ok(wit::provide_confirmation(confirmation_id, &decision)?)
    }

    pub(crate) fn cancel() -> Result<(), CommandError> {
        Ok(wit::cancel()?)
    }

    pub(crate) fn print(text: &str, style: Style) {
        let style = match style {
            Style::Plain => render::Style::Plain,
            Style::Strong => render::Style::Strong,
            Style::Faint => render::Style::Faint,
            Style::Warning => render::Style::Warning,
            Style::Failure => render::Style::Failure,
        };
        render::print(text, &style);
    }

    pub(crate) use render::status;

    impl From<wit::Error> for CommandError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::NotGranted => Self::NotGranted,
                wit::Error::NoSuchQuestion => Self::NoSuchQuestion,
                wit::Error::Invalid(reason) => Self::Invalid { reason },
                wit::Error::Full(reason) => Self::Full { reason },
                wit::Error::Other(other) => Self::Failed { reason: message(other) },
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::{
        cell::{Cell, RefCell},
        collections::BTreeSet,
    };

    use super::{Command, CommandError, Style};
    use crate::testing::{Power, is_granted, nothing_in};

    thread_local! {
        static QUESTIONS: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
        static COMMANDS: RefCell<Vec<Command>> = RefCell::default();
        static PRINTED: RefCell<Vec<(String, Style)>> = RefCell::default();
        static STATUS: Cell<Option<String>> = const { Cell::new(None) };
    }

    /// Adds an open question, which a UI can answer once.
    ///
    /// ```
    /// use sallyport_sdk::{testing, ui};
    ///
    /// testing::grant([testing::Power::Ui]);
    /// testing::question(7);
    /// assert!(ui::confirm("7", false).is_ok());
    /// ```
    pub fn question(confirmation_id: impl ToString) {
        QUESTIONS.with_borrow_mut(|questions| questions.insert(confirmation_id.to_string()));
    }

    /// Returns the commands that a UI sent since the last call.
    ///
    /// ```
    /// use sallyport_sdk::{testing, ui};
    ///
    /// testing::grant([testing::Power::Ui]);
    /// ui::cancel().unwrap();
    /// assert_eq!(testing::commands(), [ui::Command::Cancel]);
    /// ```
    pub fn commands() -> Vec<Command> {
        COMMANDS.take()
    }

    /// Returns the texts that a UI printed since the last call, each with its style.
    ///
    /// ```
    /// use sallyport_sdk::{testing, ui::{self, Style}};
    ///
    /// ui::print("Hello", Style::Strong);
    /// assert_eq!(testing::printed(), [("Hello".to_owned(), Style::Strong)]);
    /// ```
    pub fn printed() -> Vec<(String, Style)> {
        PRINTED.take()
    }

    /// Returns the status that a UI shows now.
    ///
    /// ```
    /// use sallyport_sdk::{testing, ui};
    ///
    /// ui::status(Some("thinking"));
    /// ui::status(None);
    /// assert_eq!(testing::status(), None);
    /// ```
    pub fn shown_status() -> Option<String> {
        let status = STATUS.take();
        STATUS.set(status.clone());
        status
    }

    fn take(command: Command) -> Result<(), CommandError> {
        if !is_granted(Power::Ui) {
            return Err(CommandError::NotGranted);
        }
        COMMANDS.with_borrow_mut(|commands| commands.push(command));
        Ok(())
    }

    pub(crate) fn submit_input(text: &str) -> Result<(), CommandError> {
        match nothing_in(text) {
            Some(reason) => Err(CommandError::Invalid { reason }),
            None => take(Command::SubmitInput(text.to_owned())),
        }
    }

    pub(crate) fn confirm(confirmation_id: &str, approved: bool) -> Result<(), CommandError> {
        if !is_granted(Power::Ui) {
            return Err(CommandError::NotGranted);
        }
        if !QUESTIONS.with_borrow_mut(|questions| questions.remove(confirmation_id)) {
            return Err(CommandError::NoSuchQuestion);
        }
        take(Command::Confirm { confirmation_id: confirmation_id.to_owned(), approved })
    }

    pub(crate) fn cancel() -> Result<(), CommandError> {
        take(Command::Cancel)
    }

    pub(crate) fn print(text: &str, style: Style) {
        PRINTED.with_borrow_mut(|printed| printed.push((text.to_owned(), style)));
    }

    pub(crate) fn status(text: Option<&str>) {
        STATUS.set(text.map(str::to_owned));
    }
}
