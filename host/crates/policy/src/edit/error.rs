//! Why a policy file was not edited.

use sallyport_contract::text::shell_word;

use crate::{
    Capability,
    source::{HintedError, SourceError, quoted},
};

/// Why a policy file was not edited. Text from the file is escaped and truncated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is not TOML, or is longer or nests more deeply than a policy may.
    #[error("{line}:{column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A key of the file has a value that no policy has there.
    #[error("{line}:{column}: {} must be {wanted}", quoted(key))]
    Shape {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// The key.
        key: String,
        /// What the value should be.
        wanted: &'static str,
    },
    /// The addition is not valid in a policy.
    #[error("{message}")]
    InvalidAddition {
        /// The reason.
        message: String,
        /// A hint how to write it, if there is one.
        hint: Option<String>,
    },
    /// The addition would widen a folder and restrict it, and the folder's entry does not have that
    /// restriction.
    #[error(
        "{} is granted for reading already, and its entry has no such deny, quota or sensitive",
        quoted(path)
    )]
    NotRestricted {
        /// The path of the folder, as the addition writes it.
        path: String,
    },
    /// The addition asks about requests that an entry of the same file allows without a question.
    /// The least strict entry counts, so the question would never be asked.
    #[error("{} is granted without a question already", quoted(pattern))]
    NeverAsked {
        /// The pattern of the addition.
        pattern: String,
    },
    /// Some items of a capability are granted, and the addition is every one.
    #[error("{capability} is granted for some {0}s only, and this is every {0}", capability.kind().item_noun())]
    GrantedInPart {
        /// The capability.
        capability: Capability,
    },
    /// The thing to remove is not granted but taken away, and without that another file could grant
    /// it.
    #[error("\"{key}\" is not granted: line {line} takes it away")]
    TakenAway {
        /// Its key in the plugin's table.
        key: &'static str,
        /// The line of the `false`, from 1.
        line: usize,
    },
    /// The thing to remove does not exist.
    #[error("there is no {kind} {}", quoted(name))]
    NotFound {
        /// The kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
        /// A few existing names of that kind, the most similar first.
        near: Vec<String>,
    },
    /// The target matches several rules with different decisions. Removing all of them would remove
    /// refusals together with grants.
    #[error("the rules for {} decide differently", quoted(tools))]
    Ambiguous {
        /// The tools of these rules.
        tools: String,
        /// The lines at which the rules begin.
        lines: Vec<usize>,
    },
}

impl HintedError for EditError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { .. } | Self::Shape { .. } => {
                Some("correct the file by hand first".to_owned())
            }
            Self::InvalidAddition { hint, .. } => hint.clone(),
            Self::NotRestricted { path } => {
                Some(format!("revoke --path {} first", shell_word(path)))
            }
            Self::NeverAsked { .. } => {
                Some("revoke the entry first, because the least strict one counts".to_owned())
            }
            Self::GrantedInPart { capability } => {
                Some(format!("to grant every one, revoke --capability {capability} first"))
            }
            Self::TakenAway { .. } => {
                Some("to take the denial back, delete that line, or grant it".to_owned())
            }
            Self::NotFound { near, .. } if near.is_empty() => None,
            Self::NotFound { near, .. } => {
                let near: Vec<_> = near.iter().map(|text| quoted(text)).collect();
                Some(format!("there is {}", near.join(", ")))
            }
            Self::Ambiguous { lines, .. } => {
                let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                Some(format!("name the decision; they are at lines {}", lines.join(", ")))
            }
        }
    }
}

impl From<SourceError> for EditError {
    fn from(error: SourceError) -> Self {
        Self::InvalidAddition { message: error.message, hint: error.hint }
    }
}
