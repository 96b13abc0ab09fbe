//! Records messages, input and output of a plugin, so that tests can read them.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use super::{Power, is_granted};
use crate::{
    inbox::InboxError,
    notify::{Message, NotifyError},
    open_url::{OpenUrlError, Opened},
    provider::Delta,
    ui::{Command, CommandError, Style},
};

/// The progress of a call: the fraction and a message.
type Step = (Option<f64>, Option<String>);

/// An input for the session, and its origin.
type Input = (String, Option<String>);

thread_local! {
    static NOTICED: RefCell<Vec<Message>> = RefCell::default();
    static PROGRESSED: RefCell<Vec<Step>> = RefCell::default();
    static OPENED: RefCell<Vec<String>> = RefCell::default();
    static SUBMITTED: RefCell<Vec<Input>> = RefCell::default();
    static DELTAS: RefCell<Vec<Delta>> = RefCell::default();
    static QUESTIONS: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    static COMMANDS: RefCell<Vec<Command>> = RefCell::default();
    static PRINTED: RefCell<Vec<(String, Style)>> = RefCell::default();
    static STATUS: Cell<Option<String>> = const { Cell::new(None) };
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

/// Returns the progress that was reported since the last call.
///
/// ```
/// use sallyport_sdk::{progress, testing};
///
/// progress::report(Some(0.5), None);
/// assert_eq!(testing::progressed(), []);
/// testing::grant([testing::Power::Progress]);
/// progress::report(Some(0.5), None);
/// assert_eq!(testing::progressed(), [(Some(0.5), None)]);
/// ```
pub fn progressed() -> Vec<(Option<f64>, Option<String>)> {
    PROGRESSED.take()
}

/// Returns the addresses that were opened since the last call.
///
/// ```
/// use sallyport_sdk::{open_url, testing};
///
/// testing::grant([testing::Power::OpenUrl]);
/// open_url::open("https://example.com/").unwrap();
/// assert_eq!(testing::opened(), ["https://example.com/"]);
/// ```
pub fn opened() -> Vec<String> {
    OPENED.take()
}

/// Returns the inputs that listeners submitted since the last call, each with its origin.
///
/// ```
/// use sallyport_sdk::{inbox, testing};
///
/// testing::grant([testing::Power::Inbox]);
/// inbox::submit("Hello", None).unwrap();
/// assert_eq!(testing::submitted(), [("Hello".to_owned(), None)]);
/// ```
pub fn submitted() -> Vec<(String, Option<String>)> {
    SUBMITTED.take()
}

/// Returns the text that a provider has shown since the last call.
///
/// ```
/// use sallyport_sdk::{provider::{self, Delta}, testing};
///
/// provider::text("Hello");
/// assert_eq!(testing::deltas(), [Delta::Text("Hello".to_owned())]);
/// ```
pub fn deltas() -> Vec<Delta> {
    DELTAS.take()
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
pub fn status() -> Option<String> {
    let status = STATUS.take();
    STATUS.set(status.clone());
    status
}

fn nothing_in(text: &str) -> Option<String> {
    text.trim().is_empty().then(|| "it is empty".to_owned())
}

pub(crate) mod notify {
    //! Messages to the user.

    use super::{Message, NOTICED, NotifyError, Power, is_granted, nothing_in};

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

pub(crate) mod progress {
    //! The progress of a call.

    use super::{PROGRESSED, Power, is_granted};

    pub(crate) fn report(part: Option<f64>, message: Option<&str>) {
        if is_granted(Power::Progress) {
            let step = (part, message.map(str::to_owned));
            PROGRESSED.with_borrow_mut(|steps| steps.push(step));
        }
    }
}

pub(crate) mod open_url {
    //! Opening pages in the browser.

    use super::{OPENED, OpenUrlError, Opened, Power, is_granted};

    pub(crate) fn open(url: &str) -> Result<Opened, OpenUrlError> {
        if !is_granted(Power::OpenUrl) {
            let reason = "the policy does not grant it".to_owned();
            return Err(OpenUrlError::Denied { reason });
        }
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let reason = "only http and https addresses can be opened".to_owned();
            return Err(OpenUrlError::Invalid { reason });
        }
        OPENED.with_borrow_mut(|opened| opened.push(url.to_owned()));
        Ok(Opened::Browser)
    }
}

pub(crate) mod inbox {
    //! Input from a listener to the session.

    use super::{InboxError, Power, SUBMITTED, is_granted, nothing_in};

    pub(crate) fn submit(text: &str, origin: Option<&str>) -> Result<(), InboxError> {
        if !is_granted(Power::Inbox) {
            return Err(InboxError::NotGranted);
        }
        if let Some(reason) = nothing_in(text) {
            return Err(InboxError::Invalid { reason });
        }
        let input = (text.to_owned(), origin.map(str::to_owned));
        SUBMITTED.with_borrow_mut(|inputs| inputs.push(input));
        Ok(())
    }
}

pub(crate) mod provider {
    //! Text of an answer while it is being made.

    use super::{DELTAS, Delta};

    pub(crate) fn text(words: &str) {
        DELTAS.with_borrow_mut(|deltas| deltas.push(Delta::Text(words.to_owned())));
    }

    pub(crate) fn reasoning(words: &str) {
        DELTAS.with_borrow_mut(|deltas| deltas.push(Delta::Reasoning(words.to_owned())));
    }
}

pub(crate) mod ui {
    //! Commands of a UI to the session, and its output.

    use super::{
        COMMANDS, Command, CommandError, PRINTED, Power, QUESTIONS, STATUS, Style, is_granted,
        nothing_in,
    };

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
