//! Why a line that looks like a command is none.

use super::table::State;

/// Why a line that looks like a command is none. Nothing of it was sent to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlashError {
    /// No command has this name.
    #[error("there is no command /{word}")]
    Unknown {
        /// What was typed, shortened and escaped.
        word: String,
        /// The command that was probably meant.
        near: Option<&'static str>,
    },
    /// The command makes no sense at this moment.
    #[error("/{name} does not work {}", state.words())]
    Unfitting {
        /// The command.
        name: &'static str,
        /// What the session is doing.
        state: State,
    },
    /// Something stands behind a command that takes nothing.
    #[error("/{name} takes no argument")]
    Unwanted {
        /// The command.
        name: &'static str,
    },
    /// What stands behind the command cannot be the name of a plugin.
    #[error("{text:?} is not the name of a plugin")]
    NoPlugin {
        /// What was typed, shortened and escaped.
        text: String,
    },
    /// A quotation mark has no partner.
    #[error("/{name}: a quotation mark is not closed")]
    Unclosed {
        /// The command.
        name: &'static str,
    },
}

impl SlashError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { near: Some(near), .. } => {
                format!("did you mean /{near}? (a second slash in front sends the line as text)")
            }
            Self::Unknown { near: None, .. } => {
                "/help lists all; a second slash in front sends the line as text".into()
            }
            Self::Unfitting { .. } => {
                "wait until the answer is complete, or press Ctrl-C to stop it".into()
            }
            Self::Unwanted { name } => format!("type only /{name}, or /help {name}"),
            Self::NoPlugin { .. } => "list the plugins with /plugins".into(),
            Self::Unclosed { .. } => "close it, or leave out both".into(),
        }
    }
}
