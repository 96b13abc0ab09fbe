//! Why a policy file was not edited.

use crate::source::{Mistake, SourceError, quoted};

/// Why a policy file was not edited. Text from the file is quoted escaped and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is not TOML, or longer or deeper than a policy is read.
    #[error("{line}:{column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A key of the file holds something that no policy holds there.
    #[error("{line}:{column}: {} must be {wanted}", quoted(key))]
    Shape {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// The key.
        key: String,
        /// What it should hold.
        wanted: &'static str,
    },
    /// What is to be added is not something that a policy holds.
    #[error("{message}")]
    Unfit {
        /// What is wrong with it.
        message: String,
        /// How to write it instead, where that can be told.
        hint: Option<String>,
    },
    /// What is to be removed is not there.
    #[error("there is no {kind} {}", quoted(name))]
    Absent {
        /// What kind of thing was looked for.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The names of that kind that are there, a few, the most alike first.
        near: Vec<String>,
    },
    /// Several rules were meant, and removing all of them would take refusals away with grants.
    #[error("the rules for {} decide differently", quoted(tools))]
    Ambiguous {
        /// The tools that they speak about.
        tools: String,
        /// The lines at which the rules begin.
        lines: Vec<usize>,
    },
}

impl Mistake for EditError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { .. } | Self::Shape { .. } => {
                Some("correct the file by hand first".to_owned())
            }
            Self::Unfit { hint, .. } => hint.clone(),
            Self::Absent { near, .. } if near.is_empty() => None,
            Self::Absent { near, .. } => {
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
        Self::Unfit { message: error.message, hint: error.hint }
    }
}
