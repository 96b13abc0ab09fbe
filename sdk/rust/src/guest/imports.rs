//! The imports that reach the user and the session, one small module each.

use super::{bindings::powers::sallyport::plugin as wit, message};

pub(crate) mod notify {
    //! Messages to the user.

    use super::{message, wit::notify as wit};
    use crate::notify::{Audience, Message, NotifyError};

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

pub(crate) mod progress {
    //! The progress of a call.

    pub(crate) use super::wit::progress::report;
}

pub(crate) mod open_url {
    //! Opening pages in the browser.

    use super::{message, wit::open_url as wit};
    use crate::open_url::{OpenUrlError, Opened};

    pub(crate) fn open(url: &str) -> Result<Opened, OpenUrlError> {
        Ok(match wit::open(url)? {
            wit::Opened::Browser => Opened::Browser,
            // However it was shown, the page is not open in a browser yet.
            wit::Opened::Shown | wit::Opened::Other(_) => Opened::Shown,
        })
    }

    impl From<wit::Error> for OpenUrlError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::Denied(reason) => Self::Denied { reason },
                wit::Error::Invalid(reason) => Self::Invalid { reason },
                wit::Error::Other(other) => Self::Failed { reason: message(other) },
            }
        }
    }
}

pub(crate) mod packages {
    //! Packages of a programming language.

    use super::{message, wit::packages as wit};
    use crate::packages::{File, PackageError};

    pub(crate) fn fetch(name: &str, version: &str) -> Result<Vec<File>, PackageError> {
        let files = wit::fetch(name, version)?.into_iter();
        Ok(files.map(|wit::File { path, data, extra: _ }| File { path, data }).collect())
    }

    pub(crate) fn releases(name: &str) -> Result<Vec<String>, PackageError> {
        Ok(wit::releases(name)?.into_iter().map(|release| release.version).collect())
    }

    impl From<wit::Error> for PackageError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::Denied(reason) => Self::Denied { reason },
                wit::Error::NotFound(reason) => Self::NotFound { reason },
                wit::Error::Unavailable(reason) => Self::Unavailable { reason },
                wit::Error::Other(other) => Self::Unavailable { reason: message(other) },
            }
        }
    }
}

pub(crate) mod inbox {
    //! Input from a listener to the session.

    use super::{message, wit::inbox as wit};
    use crate::inbox::InboxError;

    pub(crate) fn submit(text: &str, origin: Option<&str>) -> Result<(), InboxError> {
        let input = wit::Input {
            text: text.to_owned(),
            attachments: Vec::new(),
            origin: origin.map(str::to_owned),
            extra: None,
        };
        Ok(wit::submit(&input)?)
    }

    impl From<wit::Error> for InboxError {
        fn from(error: wit::Error) -> Self {
            match error {
                wit::Error::NotGranted => Self::NotGranted,
                wit::Error::Invalid(reason) => Self::Invalid { reason },
                wit::Error::Full(reason) => Self::Full { reason },
                wit::Error::Other(other) => Self::Failed { reason: message(other) },
            }
        }
    }
}

pub(crate) mod provider {
    //! Text of an answer while it is being made.

    pub(crate) use super::wit::deltas::{reasoning, text};
}

pub(crate) mod ui {
    //! Commands of a UI to the session, and its output.

    use super::{
        message,
        wit::{commands as wit, render},
    };
    use crate::ui::{CommandError, Style};

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

    pub(crate) use super::wit::render::status;

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
