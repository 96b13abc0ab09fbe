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
    /// Its version, by the rules of Semantic Versioning.
    pub version: String,
    /// What it is for. Untrusted text.
    pub description: String,
    /// The parts that it plays.
    pub roles: Vec<Role>,
    /// How long an instance of it lives.
    pub instance: Instance,
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
    /// It brings a model.
    Provider,
    /// It turns signals from outside into input.
    Listener,
    /// It describes a persona.
    Guide,
    /// It is the user's side of a session.
    Ui,
}

impl Role {
    const WORDS: [(&str, Self); 5] = [
        ("tools", Self::Tools),
        ("provider", Self::Provider),
        ("listener", Self::Listener),
        ("guide", Self::Guide),
        ("ui", Self::Ui),
    ];

    /// The word that manifests use for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Provider => "provider",
            Self::Listener => "listener",
            Self::Guide => "guide",
            Self::Ui => "ui",
        }
    }
}

/// How long an instance of a plugin lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance {
    /// For one call.
    Call,
    /// For a session, or until it has idled too long.
    Session,
}

impl Instance {
    const WORDS: [(&str, Self); 2] = [("call", Self::Call), ("session", Self::Session)];

    /// The word that manifests use for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Session => "session",
        }
    }
}

struct Version(String);

#[derive(Debug, thiserror::Error)]
#[error("{} is not a version", quoted(text))]
struct VersionError {
    text: String,
}

impl Mistake for VersionError {
    fn hint(&self) -> Option<String> {
        let parts = self.text.split('.').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>();
        Some(match parts.as_deref() {
            Ok([major]) => format!("write three numbers: {major}.0.0"),
            Ok([major, minor]) => format!("write three numbers: {major}.{minor}.0"),
            _ => "write it like 1.2.3 or 1.2.3-beta.1 (https://semver.org)".to_owned(),
        })
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let is_semantic = semver::Version::parse(text).is_ok();
        if is_semantic && text.len() <= VERSION_BYTES_MAX {
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
            let roles = root.list("roles", |item| item.choice(&Role::WORDS))?;
            let instance = root.optional("instance", |item| item.choice(&Instance::WORDS))?;
            Ok(Self {
                name: root.required("name", Item::parsed)?,
                version: root.required("version", Item::parsed).map(|Version(text)| text)?,
                description: root.required("description", Item::prose)?,
                roles: if roles.is_empty() { vec![Role::Tools] } else { roles },
                instance: instance.unwrap_or(Instance::Call),
                request: request.unwrap_or_else(Request::none),
                settings,
            })
        })
    }

    /// Returns the manifest of a folder with a script, which comes without one: it asks to run as a
    /// program of this machine, with the folders and variables that its policy names.
    pub fn of_script(name: PluginName, description: String) -> Self {
        Self { description, request: Request::of_script(), ..Self::bare(name) }
    }

    /// Returns the manifest of a component that comes without one: it asks for nothing.
    pub fn bare(name: PluginName) -> Self {
        Self {
            name,
            version: "0.0.0".to_owned(),
            description: String::new(),
            roles: vec![Role::Tools],
            instance: Instance::Call,
            request: Request::none(),
            settings: SettingsSchema::none(),
        }
    }
}
