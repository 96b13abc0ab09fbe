//! Errors of lines that look like a command.

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
        /// What a word of another program is called here.
        foreign: Option<&'static str>,
    },
    /// The command with this name takes no argument.
    #[error("/{0} takes no argument")]
    UnexpectedArgument(&'static str),
    /// The command with this name takes no other argument than `files`.
    #[error("/{0} takes no argument except \"files\"")]
    NotFiles(&'static str),
    /// This text, shortened and escaped, cannot be the name of a plugin.
    #[error("{0:?} is not the name of a plugin")]
    InvalidPluginName(String),
    /// The argument of this command has to be a number from 1.
    #[error("/{0} takes a number from 1")]
    InvalidNumber(&'static str),
    /// A quotation mark in the argument of this command is not closed.
    #[error("/{0}: a quotation mark is not closed")]
    UnclosedQuote(&'static str),
}

impl SlashError {
    /// Returns a hint for the user on how to fix it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { foreign: Some(hint), .. } => (*hint).to_owned(),
            Self::Unknown { near: Some(near), .. } => {
                format!("did you mean /{near}? (a second slash in front sends the line as text)")
            }
            Self::Unknown { near: None, foreign: None, .. } => {
                "/help lists all; a second slash in front sends the line as text".into()
            }
            Self::UnexpectedArgument(name) => format!("type only /{name}, or /help {name}"),
            Self::NotFiles(name) => {
                format!("/{name} removes the last turn; /{name} files puts files back")
            }
            Self::InvalidNumber(name) => format!("/{name} 2 is an example"),
            Self::InvalidPluginName(_) => "list the plugins with /plugins".into(),
            Self::UnclosedQuote(_) => "close it, or leave out both".into(),
        }
    }
}
