//! The requests of a manifest. Each has a reason, for the user who decides about it.

mod capability;

use std::{fmt, path::PathBuf};

use serde_json::{Map, Value};

use crate::{
    capability::{Capability, RequestedCapability},
    document::{TomlItem, TomlSection},
    environment::read_env_name,
    folder::{FsAccess, FsEntry, read_path},
    net::{NetPattern, NetPatternError, pattern::check_methods},
    secret::{SecretGrant, SecretHeader, SecretName, SecretUse},
    settings::SettingsSchema,
    source::{HintedError, SourceError, nearest_match, quoted},
};

pub use self::capability::CapabilityRequest;
use self::capability::read_capability_requests;
pub(crate) use self::capability::requests_for;

/// All requests of a plugin. The plugin gets none of them unless a policy grants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRequests {
    /// Network access.
    pub net: Vec<NetRequest>,
    /// Folders and files.
    pub fs: Vec<FsRequest>,
    /// Environment variables.
    pub env: Vec<EnvRequest>,
    /// Secrets.
    pub secrets: Vec<SecretRequest>,
    /// Capabilities of the host.
    pub capabilities: Vec<CapabilityRequest>,
}

/// A request for network access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetRequest {
    /// The requested URLs and methods.
    pub allow: NetPatternTemplate,
    /// The author's reason.
    pub why: String,
}

/// A request for a folder or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsRequest {
    /// The requested access.
    pub access: FsAccess,
    /// The requested path; `None` for any folder of the operator's choice.
    pub path: Option<PathBuf>,
    /// The author's reason.
    pub why: String,
}

/// A request for an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvRequest {
    /// Its name.
    pub name: String,
    /// The author's reason.
    pub why: String,
}

/// A request for a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRequest {
    /// Its name.
    pub name: SecretName,
    /// Whether the plugin wants to read it; otherwise the host adds it to requests.
    pub reveal: bool,
    /// The header in which the plugin's service expects it. It appears in the proposed policy text;
    /// the policy alone decides what is sent.
    pub header: Option<SecretHeader>,
    /// The author's reason.
    pub why: String,
}

/// A network pattern with `{name}` placeholders for the values of settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPatternTemplate {
    parts: Vec<NetPatternPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NetPatternPart {
    Text(String),
    Setting(String),
}

/// Why a template is not a network pattern with the current settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetTemplateError {
    /// A setting has neither a value nor a default.
    #[error("the setting {} is not given", quoted(setting))]
    NotGiven {
        /// Its name.
        setting: String,
    },
    /// A setting's value cannot be part of a pattern: it is not text, is empty, or contains a star.
    #[error("the setting {} is not a URL or a part of one", quoted(setting))]
    BadValue {
        /// Its name.
        setting: String,
    },
    /// With the settings filled in, the text is not a pattern.
    #[error(transparent)]
    Pattern(#[from] NetPatternError),
}

impl HintedError for NetTemplateError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotGiven { .. } => Some("give it in the configuration".to_owned()),
            Self::BadValue { .. } => Some("write it like https://api.example.com".to_owned()),
            Self::Pattern(error) => error.hint(),
        }
    }
}

impl PluginRequests {
    /// Returns the request of a plugin that asks for nothing.
    pub fn empty() -> Self {
        Self {
            net: Vec::new(),
            fs: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            capabilities: Vec::new(),
        }
    }

    /// Returns the request of a native program without a manifest.
    pub(crate) fn for_program(what: &str) -> Self {
        let why = || format!("it is {what}");
        let folders = FsRequest { access: FsAccess::ReadWrite, path: None, why: why() };
        let process = CapabilityRequest {
            requested: RequestedCapability { capability: Capability::Process, detail: None },
            why: why(),
        };
        Self { fs: vec![folders], capabilities: vec![process], ..Self::empty() }
    }

    /// Returns the request of a plugin that needs these addresses.
    pub(crate) fn for_addresses(addresses: &[String], why: &str) -> Result<Self, NetPatternError> {
        let request = |address: &String| {
            address.parse::<NetPattern>()?;
            let allow = NetPatternTemplate { parts: vec![NetPatternPart::Text(address.clone())] };
            Ok(NetRequest { allow, why: why.to_owned() })
        };
        Ok(Self { net: addresses.iter().map(request).collect::<Result<_, _>>()?, ..Self::empty() })
    }

    /// Adds the requests of a manifest that belongs to the same plugin.
    pub fn merge(&mut self, other: Self) {
        self.net.extend(other.net);
        self.fs.extend(other.fs);
        self.env.extend(other.env);
        self.secrets.extend(other.secrets);
        self.capabilities.extend(other.capabilities);
    }

    /// Whether the plugin requests a capability.
    pub(crate) fn requests_capability(&self, capability: Capability) -> bool {
        self.capabilities.iter().any(|request| request.requested.capability() == capability)
    }

    pub(crate) fn from_toml(
        item: TomlItem<'_>,
        settings: &SettingsSchema,
    ) -> Result<Self, SourceError> {
        item.read_section(|section| {
            Ok(Self {
                net: section.read_list("net", |item| NetRequest::from_toml(item, settings))?,
                fs: section.read_list("fs", FsRequest::from_toml)?,
                env: section.read_list("env", EnvRequest::from_toml)?,
                secrets: section.read_list("secrets", SecretRequest::from_toml)?,
                capabilities: read_capability_requests(section)?,
            })
        })
    }
}

impl NetRequest {
    fn from_toml(item: TomlItem<'_>, settings: &SettingsSchema) -> Result<Self, SourceError> {
        item.read_section(|section| {
            let allow = section
                .read_required("allow", |item| NetPatternTemplate::from_toml(item, settings))?;
            Ok(Self { allow, why: read_reason(section)? })
        })
    }
}

impl FsRequest {
    fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        item.read_section(|section| {
            Ok(Self {
                access: section.read_required("access", FsAccess::from_toml)?,
                path: section.read_optional("path", read_path)?,
                why: read_reason(section)?,
            })
        })
    }

    /// Whether the request is about an entry of a policy: it leaves the choice to the operator, or
    /// names the entry's path or a folder around it.
    pub(crate) fn covers_entry(&self, entry: &FsEntry) -> bool {
        self.path.as_ref().is_none_or(|path| entry.mount.host.starts_with(path))
    }
}

impl EnvRequest {
    fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        item.read_section(|section| {
            let name = section.read_required("name", read_env_name)?;
            Ok(Self { name, why: read_reason(section)? })
        })
    }
}

impl SecretRequest {
    fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        item.read_section(|section| {
            let name = section.read_required("name", TomlItem::read_parsed)?;
            let reveal = section.read_optional("reveal", TomlItem::read_bool)?.unwrap_or(false);
            let header = SecretHeader::from_toml(section)?;
            Ok(Self { name, reveal, header, why: read_reason(section)? })
        })
    }

    /// Whether the request is about an entry of a policy. A request to read a secret also covers an
    /// entry that sends it; a request to send does not cover an entry that reveals.
    pub(crate) fn covers_grant(&self, grant: &SecretGrant) -> bool {
        self.name == grant.name && (self.reveal || grant.usage != SecretUse::Reveal)
    }
}

fn read_reason(section: &mut TomlSection<'_>) -> Result<String, SourceError> {
    section.read_required("why", TomlItem::read_nonblank_string)
}

impl NetPatternTemplate {
    fn from_toml(item: TomlItem<'_>, settings: &SettingsSchema) -> Result<Self, SourceError> {
        let place = item.place();
        let text = item.read_string()?;
        check_methods(&text).map_err(|mistake| place.clone().into_hinted_error(&mistake))?;
        let template = Self::from_text(&text);
        for name in template.setting_names() {
            if !settings.is_string_setting(name) {
                return Err(unknown_setting_error(place.into_error(""), name, settings));
            }
        }
        match template.fill_settings(&settings.with_defaults(&Map::new())) {
            // A template with settings that the user has not filled in yet cannot be checked.
            Ok(_) | Err(NetTemplateError::NotGiven { .. }) => Ok(template),
            Err(mistake @ (NetTemplateError::BadValue { .. } | NetTemplateError::Pattern(_))) => {
                Err(place.into_hinted_error(&mistake))
            }
        }
    }

    /// Splits at braces. An unmatched brace stays in the text, which no pattern accepts.
    fn from_text(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, open)| Some((before, open.split_once('}')?)))
        {
            parts.push(NetPatternPart::Text(before.to_owned()));
            parts.push(NetPatternPart::Setting(name.to_owned()));
            rest = after;
        }
        parts.push(NetPatternPart::Text(rest.to_owned()));
        Self { parts }
    }

    fn setting_names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            NetPatternPart::Text(_) => None,
            NetPatternPart::Setting(name) => Some(name.as_str()),
        })
    }

    /// Returns the pattern with the values of settings filled in.
    ///
    /// # Errors
    ///
    /// A setting that is missing or has an unsuitable value, or a result that is not a pattern.
    pub fn fill_settings(
        &self,
        settings: &Map<String, Value>,
    ) -> Result<NetPattern, NetTemplateError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                NetPatternPart::Text(piece) => text.push_str(piece),
                NetPatternPart::Setting(name) => text.push_str(string_setting(name, settings)?),
            }
        }
        Ok(text.parse()?)
    }
}

fn string_setting<'s>(
    name: &str,
    settings: &'s Map<String, Value>,
) -> Result<&'s str, NetTemplateError> {
    let setting = || name.to_owned();
    let value =
        settings.get(name).ok_or_else(|| NetTemplateError::NotGiven { setting: setting() })?;
    let fit = |text: &&str| !text.is_empty() && !text.contains('*');
    let text = value.as_str().filter(fit);
    let text = text.ok_or_else(|| NetTemplateError::BadValue { setting: setting() })?;
    // The template continues with its own slash.
    Ok(text.strip_suffix('/').unwrap_or(text))
}

fn unknown_setting_error(error: SourceError, name: &str, settings: &SettingsSchema) -> SourceError {
    let known = settings.setting_names().any(|known| known == name);
    let message = match known {
        true => format!("the setting {} is not of the type \"string\"", quoted(name)),
        false => format!("there is no setting {}", quoted(name)),
    };
    let error = SourceError { message, ..error };
    let strings = settings.setting_names().filter(|known| settings.is_string_setting(known));
    match nearest_match(name, strings).filter(|_| !known) {
        Some(near) => error.with_hint(format!("did you mean {{{near}}}?")),
        None => error.with_hint(format!("add [settings.{name}] with type = \"string\"")),
    }
}

impl fmt::Display for NetPatternTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                NetPatternPart::Text(piece) => f.write_str(piece)?,
                NetPatternPart::Setting(name) => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}
