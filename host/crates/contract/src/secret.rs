//! A value that is used but never shown: a provider's key, a plugin's password.
//!
//! Settings and errors are printed in many places. A secret has a type of its own so that a derived
//! `Debug` cannot print it. Its memory is wiped when it is dropped.

use std::fmt;

use zeroize::Zeroizing;

/// The text shown instead of a secret.
const MASK: &str = "[key]";

/// A secret. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// Returns the value itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_shown() {
        let key = Secret::new("sk-12345");
        assert_eq!(format!("{key} {key:?} {:?}", Some(&key)), "[key] [key] Some([key])");
    }
}
