//! Secrets: their sources, and the requests that carry them.
//!
//! A policy contains the names of secrets, never their values. `[secret.NAME]` states where the
//! host finds a value, and an entry of a plugin's `secrets` list states how the plugin uses it.
//! Usually the host adds the value to requests to one origin, and the plugin never sees it.

mod grant;
mod injection;
mod source;

use std::{collections::BTreeMap, fmt, str::FromStr};

pub(crate) use self::{
    grant::check_sources,
    source::{SecretEntry, secret_source_toml},
};
pub use self::{
    grant::{SecretGrant, SecretUse},
    injection::{SecretHeader, SecretInjection},
    source::SecretSource,
};
use crate::source::{HintedError, quoted};

/// Longest name of a secret, in bytes: as for a plugin.
const SECRET_NAME_BYTES_MAX: usize = 64;

/// The secrets that have a source in the policy.
pub(crate) type SecretSources = BTreeMap<SecretName, SecretEntry>;

/// The name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

/// A text is not the name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not the name of a secret", quoted(name))]
pub struct SecretNameError {
    name: String,
}

impl HintedError for SecretNameError {
    fn hint(&self) -> Option<String> {
        let most = SECRET_NAME_BYTES_MAX;
        Some(format!(
            "use up to {most} lower-case letters, digits, '-' and '_', starting with a letter"
        ))
    }
}

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(name: &str) -> Result<Self, SecretNameError> {
        let head = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if head && name.len() <= SECRET_NAME_BYTES_MAX && name.bytes().all(rest) {
            Ok(Self(name.to_owned()))
        } else {
            Err(SecretNameError { name: name.to_owned() })
        }
    }
}

impl SecretName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
