//! The methods of a pattern.

use std::fmt;

use super::pattern::NetPatternError;

/// The methods that a pattern can name. The list is closed, so a misspelt method is an error and
/// not a grant that never matches.
const KNOWN_METHODS: [&str; 18] = [
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

/// Methods that no pattern allows: `CONNECT` opens a tunnel past all further checks, `TRACE` echoes
/// credentials that the host may have added.
const FORBIDDEN_METHODS: [&str; 2] = ["CONNECT", "TRACE"];

/// The methods of a pattern: all, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MethodPattern {
    Any,
    Listed(Vec<&'static str>),
}

/// Returns whether a method is refused regardless of the patterns.
pub(crate) fn is_never_allowed(method: &str) -> bool {
    FORBIDDEN_METHODS.iter().any(|never| never.eq_ignore_ascii_case(method))
}

impl MethodPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, NetPatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let mut listed = Vec::new();
        for name in text.split(',') {
            let method = known_method(name)?;
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

    /// The same, regardless of case: some servers read a method so.
    pub(crate) fn contains_leniently(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(listed) => listed.iter().any(|own| own.eq_ignore_ascii_case(method)),
        }
    }

    /// Whether every method of `other` is included.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Listed(_), Self::Any) => false,
            (Self::Listed(_), Self::Listed(others)) => others.iter().all(|m| self.contains(m)),
        }
    }

    /// The common methods, if there are any.
    pub(crate) fn intersect_with(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, both) | (both, Self::Any) => Some(both.clone()),
            (Self::Listed(listed), Self::Listed(_)) => {
                let both: Vec<_> = listed.iter().copied().filter(|m| other.contains(m)).collect();
                (!both.is_empty()).then_some(Self::Listed(both))
            }
        }
    }
}

fn known_method(name: &str) -> Result<&'static str, NetPatternError> {
    let refused = || NetPatternError::Method { method: name.to_owned() };
    KNOWN_METHODS.iter().copied().find(|known| *known == name).ok_or_else(refused)
}

/// Returns the known method that is most similar to a refused one.
pub(crate) fn suggest_method(name: &str) -> Option<&'static str> {
    crate::source::nearest_match(&name.to_ascii_uppercase(), KNOWN_METHODS)
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Listed(listed) => f.write_str(&listed.join(",")),
        }
    }
}
