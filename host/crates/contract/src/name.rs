//! Names of plugins and tools.
//!
//! A tool is identified by a pair, written `plugin.tool`. Both halves are validated once, here, so
//! no other code has to check a name for paths, control sequences or wildcards.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest plugin name, in bytes: it is a folder name, a policy key and part of a file name.
pub const PLUGIN_NAME_BYTES_MAX: usize = 64;

/// Longest tool name, in bytes. Models see at most 64; longer names are shortened for them.
pub const TOOL_NAME_BYTES_MAX: usize = 128;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The plugin half is not lower-case letters, digits, `-` and `_`, led by a letter.
    #[error(
        "{0:?} is not a plugin name: use up to 64 lower-case letters, digits, '-' and '_', starting with a letter"
    )]
    Plugin(String),
    /// The tool half is not letters, digits, `_`, `-`, `.` and `:`, led by a letter, digit or `_`.
    #[error(
        "{0:?} is not a tool name: use up to 128 letters, digits, '_', '-', '.' and ':', starting with a letter, a digit or '_'"
    )]
    Tool(String),
    /// The text has no dot between plugin and tool.
    #[error("{0:?} is not a tool id: write it as PLUGIN.TOOL")]
    Id(String),
}

/// The name of a plugin: a folder name, a policy key, the first half of a [`ToolId`].
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PluginName(String);

/// The name of a tool within its plugin, as the plugin itself writes it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ToolName(String);

/// A tool's full name, written `plugin.tool`; the only form in policies, logs and audits.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ToolId {
    /// The plugin that exports the tool.
    pub plugin: PluginName,
    /// The tool's name within the plugin.
    pub tool: ToolName,
}

impl ToolId {
    /// Joins the two halves.
    pub fn new(plugin: PluginName, tool: ToolName) -> Self {
        Self { plugin, tool }
    }
}

impl FromStr for PluginName {
    type Err = NameError;

    fn from_str(s: &str) -> Result<Self, NameError> {
        let head = s.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if head && s.len() <= PLUGIN_NAME_BYTES_MAX && s.bytes().all(rest) {
            Ok(Self(s.to_owned()))
        } else {
            Err(NameError::Plugin(shorten_name(s)))
        }
    }
}

impl FromStr for ToolName {
    type Err = NameError;

    fn from_str(s: &str) -> Result<Self, NameError> {
        let head = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let rest = |b: u8| head(b) || matches!(b, b'-' | b'.' | b':');
        if s.bytes().next().is_some_and(head)
            && s.len() <= TOOL_NAME_BYTES_MAX
            && s.bytes().all(rest)
        {
            Ok(Self(s.to_owned()))
        } else {
            Err(NameError::Tool(shorten_name(s)))
        }
    }
}

impl FromStr for ToolId {
    type Err = NameError;

    fn from_str(s: &str) -> Result<Self, NameError> {
        let (plugin, tool) = s.split_once('.').ok_or_else(|| NameError::Id(shorten_name(s)))?;
        Ok(Self::new(plugin.parse()?, tool.parse()?))
    }
}

/// Returns the start of a refused name for its error: the name may be megabytes of foreign text.
fn shorten_name(s: &str) -> String {
    s.chars().take(PLUGIN_NAME_BYTES_MAX).collect()
}

macro_rules! string_newtype {
    ($($name:ident),*) => {$(
        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    )*};
}

string_newtype!(PluginName, ToolName);

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plugin, self.tool)
    }
}

impl From<ToolId> for String {
    fn from(id: ToolId) -> String {
        id.to_string()
    }
}

macro_rules! try_from_string {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(s: String) -> Result<Self, NameError> {
                s.parse()
            }
        }
    )*};
}

try_from_string!(PluginName, ToolName, ToolId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_names() {
        for good in ["clock", "google-mail", "sandbox-fs", "x_1", "a"] {
            assert!(good.parse::<PluginName>().is_ok(), "{good}");
        }
        let long = "a".repeat(65);
        for bad in ["", "Clock", "1a", "-a", "a.b", "../x", "a/b", "a b", "é", "a\0", &long] {
            assert!(bad.parse::<PluginName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn tool_names_and_ids() {
        for good in ["get_time", "python:execute", "lawsuit.check_case", "_x", "9to5"] {
            assert!(good.parse::<ToolName>().is_ok(), "{good}");
        }
        for bad in ["", ".x", "a b", "a/b", "a\n", "é", "*"] {
            assert!(bad.parse::<ToolName>().is_err(), "{bad:?}");
        }
        let id: ToolId = "law.lawsuit.check_case".parse().unwrap();
        assert_eq!((id.plugin.as_str(), id.tool.as_str()), ("law", "lawsuit.check_case"));
        assert_eq!(id.to_string(), "law.lawsuit.check_case");
        assert!("clock".parse::<ToolId>().is_err());
    }
}
