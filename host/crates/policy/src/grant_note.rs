//! Notes on a grant: oddities that are not errors but that the operator may want to know.

use std::fmt;

use crate::source::SourceLocation;

/// An oddity of a grant, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantNote {
    /// A policy entry that the manifest does not request.
    Unrequested {
        /// The place of the entry.
        place: SourceLocation,
        /// The effect of the entry: `grants the variable TZ`.
        effect: String,
    },
    /// A request that has no effect, or an entry that grants less than it states; a sentence.
    Other(String),
}

impl GrantNote {
    pub(crate) fn for_unrequested_entry(place: &SourceLocation, effect: String) -> Self {
        Self::Unrequested { place: place.clone(), effect }
    }
}

impl From<String> for GrantNote {
    fn from(sentence: String) -> Self {
        Self::Other(sentence)
    }
}

impl fmt::Display for GrantNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrequested { place, effect } => {
                write!(f, "{place} {effect}, which the manifest does not request")
            }
            Self::Other(sentence) => f.write_str(sentence),
        }
    }
}
