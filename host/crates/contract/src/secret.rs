//! A key that is sent to a provider and shown to nobody.
//!
//! Settings and errors are printed in many places. A key in a type of its own cannot slip into any
//! of them by way of a derived `Debug`.

use std::fmt;

/// What stands in place of a key wherever text is shown.
const MASK: &str = "[key]";

/// A key. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key out of sight.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Returns the key itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text without the key, should it stand in there.
    pub fn redact(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, MASK) }
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
        assert_eq!(key.redact("bad key sk-12345, sk-12345"), "bad key [key], [key]");
        assert_eq!(Secret::new("").redact("abc"), "abc");
    }
}
