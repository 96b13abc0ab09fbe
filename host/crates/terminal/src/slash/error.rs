//! Errors of lines that look like a command.

use super::table::InputState;

/// The reason why a line that looks like a command was refused. It was not sent to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlashError {
    /// No command has this name.
    #[error("there is no command /{word}")]
    Unknown {
        /// The typed word, shortened and escaped.
        word: String,
        /// The command that the user probably meant.
        near: Option<&'static str>,
    },
    /// The command is not available in this state.
    #[error("/{name} does not work {}", state.display_text())]
    Unavailable {
        /// Name of the command.
        name: &'static str,
        /// State of the session.
        state: InputState,
    },
    /// The command takes no argument.
    #[error("/{name} takes no argument")]
    UnexpectedArgument {
        /// Name of the command.
        name: &'static str,
    },
    /// The argument cannot be the name of a plugin.
    #[error("{text:?} is not the name of a plugin")]
    InvalidPluginName {
        /// The typed text, shortened and escaped.
        text: String,
    },
    /// A quotation mark is not closed.
    #[error("/{name}: a quotation mark is not closed")]
    UnclosedQuote {
        /// Name of the command.
        name: &'static str,
    },
}

impl SlashError {
    /// Returns a hint for the user on how to fix it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { near: Some(near), .. } => {
                format!("did you mean /{near}? (a second slash in front sends the line as text)")
            }
            Self::Unknown { near: None, .. } => {
                "/help lists all; a second slash in front sends the line as text".into()
            }
            Self::Unavailable { .. } => {
                "wait until the answer is complete, or press Ctrl-C to stop it".into()
            }
            Self::UnexpectedArgument { name } => format!("type only /{name}, or /help {name}"),
            Self::InvalidPluginName { .. } => "list the plugins with /plugins".into(),
            Self::UnclosedQuote { .. } => "close it, or leave out both".into(),
        }
    }
}
