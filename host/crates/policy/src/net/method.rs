//! The methods of a pattern.

use std::fmt;

use super::pattern::PatternError;

/// Methods that a pattern can name. A closed list, so that a misspelt method is an error instead
/// of a grant that never matches.
const KNOWN: [&str; 18] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "QUERY",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "PURGE",
];

/// Methods that no pattern allows: one opens a tunnel past every further check, the other echoes
/// credentials that the host may have added.
const NEVER: [&str; 2] = ["CONNECT", "TRACE"];

/// The methods of a pattern: all, or those named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Methods {
    Any,
    Listed(Vec<&'static str>),
}

/// Returns whether a method is refused whatever the patterns say.
pub(crate) fn is_never_allowed(method: &str) -> bool {
    NEVER.iter().any(|never| never.eq_ignore_ascii_case(method))
}

impl Methods {
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let mut listed = Vec::new();
        for name in text.split(',') {
            let method = known(name)?;
            if !listed.contains(&method) {
                listed.push(method);
            }
        }
        Ok(Self::Listed(listed))
    }

    pub(crate) fn contains(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(listed) => listed.contains(&method),
        }
    }

    /// Whether every method of `other` is one of these.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Listed(_), Self::Any) => false,
            (Self::Listed(_), Self::Listed(others)) => others.iter().all(|m| self.contains(m)),
        }
    }

    /// The methods that are in both, if there are any.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, both) | (both, Self::Any) => Some(both.clone()),
            (Self::Listed(listed), Self::Listed(_)) => {
                let both: Vec<_> = listed.iter().copied().filter(|m| other.contains(m)).collect();
                (!both.is_empty()).then_some(Self::Listed(both))
            }
        }
    }
}

fn known(name: &str) -> Result<&'static str, PatternError> {
    let refused = || PatternError::Method { method: name.to_owned() };
    KNOWN.iter().copied().find(|known| *known == name).ok_or_else(refused)
}

/// Returns what a refused method was probably meant to be.
pub(crate) fn suggestion(name: &str) -> Option<&'static str> {
    crate::source::nearest(&name.to_ascii_uppercase(), KNOWN)
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Listed(listed) => f.write_str(&listed.join(",")),
        }
    }
}
