//! What is odd about a grant and no mistake: the operator may want to know.

use std::fmt;

use crate::source::Place;

/// Something odd about a grant, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantNote {
    /// An entry of the policy that the manifest does not request.
    Unrequested {
        /// Where it stands.
        place: Place,
        /// What it does: `grants the variable TZ`.
        act: String,
    },
    /// A request that is void, or an entry that comes to less than it says; a sentence.
    Other(String),
}

impl GrantNote {
    pub(crate) fn unrequested(place: &Place, act: String) -> Self {
        Self::Unrequested { place: place.clone(), act }
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
            Self::Unrequested { place, act } => {
                write!(f, "{place} {act}, which the manifest does not request")
            }
            Self::Other(sentence) => f.write_str(sentence),
        }
    }
}
