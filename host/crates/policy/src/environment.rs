//! Environment variables: their names, and the entries that grant them.

use std::str::FromStr;

use crate::{
    document::TomlItem,
    source::{HintedError, SourceError, SourceLocation, quoted},
};

/// Longest name of an environment variable, in bytes: longer than any in use.
const ENV_NAME_BYTES_MAX: usize = 128;

/// An entry of a policy's `env` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnvEntry {
    pub(crate) name: String,
    pub(crate) place: SourceLocation,
}

struct EnvName(String);

#[derive(Debug, thiserror::Error)]
#[error("{} is not the name of an environment variable", quoted(name))]
struct EnvNameError {
    name: String,
}

impl HintedError for EnvNameError {
    fn hint(&self) -> Option<String> {
        Some("use letters, digits and '_', not beginning with a digit".to_owned())
    }
}

impl FromStr for EnvName {
    type Err = EnvNameError;

    fn from_str(name: &str) -> Result<Self, EnvNameError> {
        let head = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if head && rest && name.len() <= ENV_NAME_BYTES_MAX {
            Ok(Self(name.to_owned()))
        } else {
            Err(EnvNameError { name: name.to_owned() })
        }
    }
}

/// Reads the name of an environment variable. A policy never contains its value.
pub(crate) fn read_env_name(item: TomlItem<'_>) -> Result<String, SourceError> {
    item.read_parsed().map(|EnvName(name)| name)
}

impl EnvEntry {
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        read_env_name(item).map(|name| Self { name, place })
    }
}
