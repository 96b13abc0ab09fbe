//! A value that is used and shown to nobody: a provider's key, a plugin's password.
//!
//! Settings and errors are printed in many places. A secret in a type of its own cannot slip into
//! any of them by way of a derived `Debug`, and its memory is wiped when it is no longer needed.

use std::fmt;

use zeroize::Zeroizing;

/// What stands in place of a secret wherever text is shown.
const MASK: &str = "[key]";

/// A secret. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a value out of sight.
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
