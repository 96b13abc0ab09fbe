//! The manifest of a plugin, `plugin.toml`: who it is, what it asks for, how it can be set up.
//!
//! A manifest is its author's word. It can ask; only a policy can grant.

use std::str::FromStr;

use sallyport_contract::PluginName;

use crate::{
    document::{Document, Item},
    request::Request,
    settings::SettingsSchema,
    source::{Mistake, SourceError, quoted},
};

/// Longest version, in bytes.
const VERSION_BYTES_MAX: usize = 64;

/// What a plugin's author says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The plugin's name.
    pub name: PluginName,
    /// Its version: letters, digits, `.`, `-` and `+`.
    pub version: String,
    /// What it is for. Untrusted text.
    pub description: String,
    /// The parts that it plays.
    pub roles: Vec<Role>,
    /// What it asks for.
    pub request: Request,
    /// What can be set.
    pub settings: SettingsSchema,
}

/// A part that a plugin can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It exports tools for a model to call.
    Tools,
}

const ROLES: [(&str, Role); 1] = [("tools", Role::Tools)];

struct Version(String);

#[derive(Debug, thiserror::Error)]
#[error("{} is not a version", quoted(text))]
struct VersionError {
    text: String,
}

impl Mistake for VersionError {
    fn hint(&self) -> Option<String> {
        Some("write it like 1.2.3 or 1.2.3-beta.1".to_owned())
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+');
        let head = text.bytes().next().is_some_and(|b| b.is_ascii_digit());
        if head && text.len() <= VERSION_BYTES_MAX && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(VersionError { text: text.to_owned() })
        }
    }
}

impl Manifest {
    /// Parses a manifest. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// Anything in the file that is not understood completely.
    pub fn parse(file: &str, text: &str) -> Result<Self, SourceError> {
        Document::read(file, text, |root| {
            // Requests refer to settings.
            let settings = SettingsSchema::read(root)?;
            let request = root.optional("request", |item| Request::read(item, &settings))?;
            let roles = root.list("roles", |item| item.choice(&ROLES))?;
            Ok(Self {
                name: root.required("name", Item::parsed)?,
                version: root.required("version", Item::parsed).map(|Version(text)| text)?,
                description: root.required("description", Item::prose)?,
                roles: if roles.is_empty() { vec![Role::Tools] } else { roles },
                request: request.unwrap_or_else(Request::none),
                settings,
            })
        })
    }

    /// Returns the manifest of a component that comes without one: it asks for nothing.
    pub fn bare(name: PluginName) -> Self {
        Self {
            name,
            version: "0.0.0".to_owned(),
            description: String::new(),
            roles: vec![Role::Tools],
            request: Request::none(),
            settings: SettingsSchema::none(),
        }
    }
}
