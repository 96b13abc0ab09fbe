//! The manifest of a plugin, `plugin.toml`: its identity, its requests and its settings.
//!
//! A manifest is its author's claim. It can request; only a policy can grant.

use std::str::FromStr;

use sallyport_contract::PluginName;

use crate::{
    document::{TomlDocument, TomlItem},
    net::NetPatternError,
    request::PluginRequests,
    settings::SettingsSchema,
    source::{HintedError, SourceError, quoted},
};

/// Name of the custom section of a component that contains its manifest.
pub const MANIFEST_SECTION: &str = "sallyport-manifest";

/// The methods of the requests to an MCP server at an address.
pub const MCP_METHODS: [&str; 3] = ["DELETE", "GET", "POST"];

/// Longest version, in bytes.
const VERSION_BYTES_MAX: usize = 64;

/// The author's description of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The plugin's name.
    pub name: PluginName,
    /// Its version, according to Semantic Versioning.
    pub version: String,
    /// Its purpose. Untrusted text.
    pub description: String,
    /// The roles that it plays.
    pub roles: Vec<PluginRole>,
    /// The lifetime of its instances.
    pub instance: InstanceLifetime,
    /// Its requests.
    pub request: PluginRequests,
    /// Its settings.
    pub settings: SettingsSchema,
}

/// A role that a plugin can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginRole {
    /// It exports tools for a model to call.
    Tools,
    /// It provides a model.
    Provider,
    /// It turns signals from outside into input.
    Listener,
    /// It describes a persona.
    Guide,
    /// It is the user interface of a session.
    Ui,
    /// It offers texts and files under addresses.
    Resources,
    /// It begins conversations for the user.
    Prompts,
}

/// Whether a text is a version that a plugin can have: three numbers, according to Semantic
/// Versioning.
pub fn is_plugin_version(text: &str) -> bool {
    text.parse::<PluginVersion>().is_ok()
}

impl PluginRole {
    const WORDS: [(&str, Self); 7] = [
        ("tools", Self::Tools),
        ("provider", Self::Provider),
        ("listener", Self::Listener),
        ("guide", Self::Guide),
        ("ui", Self::Ui),
        ("resources", Self::Resources),
        ("prompts", Self::Prompts),
    ];

    /// The word that manifests use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Provider => "provider",
            Self::Listener => "listener",
            Self::Guide => "guide",
            Self::Ui => "ui",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// The lifetime of a plugin's instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceLifetime {
    /// One call.
    Call,
    /// A session, or until it has been idle for too long.
    Session,
}

impl InstanceLifetime {
    const WORDS: [(&str, Self); 2] = [("call", Self::Call), ("session", Self::Session)];

    /// The word that manifests use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Session => "session",
        }
    }
}

struct PluginVersion(String);

#[derive(Debug, thiserror::Error)]
#[error("{} is not a version", quoted(text))]
struct PluginVersionError {
    text: String,
}

impl HintedError for PluginVersionError {
    fn hint(&self) -> Option<String> {
        let parts = self.text.split('.').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>();
        Some(match parts.as_deref() {
            Ok([major]) => format!("write three numbers: {major}.0.0"),
            Ok([major, minor]) => format!("write three numbers: {major}.{minor}.0"),
            _ => "write it like 1.2.3 or 1.2.3-beta.1 (https://semver.org)".to_owned(),
        })
    }
}

impl FromStr for PluginVersion {
    type Err = PluginVersionError;

    fn from_str(text: &str) -> Result<Self, PluginVersionError> {
        let is_semantic = semver::Version::parse(text).is_ok();
        if is_semantic && text.len() <= VERSION_BYTES_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(PluginVersionError { text: text.to_owned() })
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
        TomlDocument::read_with(file, text, |root| {
            // Settings first: requests refer to them.
            let settings = SettingsSchema::from_toml(root)?;
            let request =
                root.read_optional("request", |item| PluginRequests::from_toml(item, &settings))?;
            let roles = root.read_list("roles", |item| item.read_choice(&PluginRole::WORDS))?;
            let instance =
                root.read_optional("instance", |item| item.read_choice(&InstanceLifetime::WORDS))?;
            Ok(Self {
                name: root.read_required("name", TomlItem::read_parsed)?,
                version: root
                    .read_required("version", TomlItem::read_parsed)
                    .map(|PluginVersion(text)| text)?,
                description: root.read_required("description", TomlItem::read_nonblank_string)?,
                roles: if roles.is_empty() { vec![PluginRole::Tools] } else { roles },
                instance: instance.unwrap_or(InstanceLifetime::Call),
                request: request.unwrap_or_else(PluginRequests::empty),
                settings,
            })
        })
    }

    /// Returns the manifest of a script folder that has no `plugin.toml`. It requests to run as a
    /// native program, with the folders and variables that its policy names.
    pub fn for_script(name: PluginName, description: String) -> Self {
        Self {
            description,
            request: PluginRequests::for_program("a script"),
            ..Self::for_bare_component(name)
        }
    }

    /// Returns the manifest of an MCP server that is a program of this machine. It requests to run
    /// as one, and any folder.
    pub fn for_mcp_server(name: PluginName) -> Self {
        Self {
            description: "tools of an MCP server".to_owned(),
            request: PluginRequests::for_program("an MCP server"),
            ..Self::for_bare_component(name)
        }
    }

    /// Returns the manifest of an MCP server at an address. It requests to reach it.
    ///
    /// # Errors
    ///
    /// The address is not a pattern.
    pub fn for_mcp_address(name: PluginName, address: &str) -> Result<Self, NetPatternError> {
        let pattern = [format!("{} {address}", MCP_METHODS.join(","))];
        let request = PluginRequests::for_addresses(&pattern, "it is an MCP server there")?;
        let description = "tools of an MCP server".to_owned();
        Ok(Self { description, request, ..Self::for_bare_component(name) })
    }

    /// Returns the manifest of a plugin that is one JSON file, which requests the addresses that its
    /// actions name, as `METHOD URL-PATTERN`.
    ///
    /// # Errors
    ///
    /// An address is not a pattern.
    pub fn for_definition(
        name: PluginName,
        version: String,
        description: String,
        addresses: &[String],
    ) -> Result<Self, NetPatternError> {
        let request = PluginRequests::for_addresses(addresses, "its actions send these requests")?;
        Ok(Self { version, description, request, ..Self::for_bare_component(name) })
    }

    /// Returns the manifest of a component that has no `plugin.toml`. It requests nothing.
    pub fn for_bare_component(name: PluginName) -> Self {
        Self {
            name,
            version: "0.0.0".to_owned(),
            description: String::new(),
            roles: vec![PluginRole::Tools],
            instance: InstanceLifetime::Call,
            request: PluginRequests::empty(),
            settings: SettingsSchema::empty(),
        }
    }
}
