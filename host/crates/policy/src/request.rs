//! The requests of a manifest. Each has a reason, for the user who decides about it.

use std::{fmt, path::PathBuf};

use serde_json::{Map, Value};

use crate::{
    capability::{Capability, CapabilityRequest, Wish, read_all},
    document::{Item, Section},
    environment::read_env_name,
    folder::{Access, FsEntry, read_path},
    net::{NetPattern, PatternError, pattern::check_methods},
    secret::{SecretGrant, SecretHeader, SecretName, SecretWay},
    settings::SettingsSchema,
    source::{Mistake, SourceError, nearest, quoted},
};

/// All requests of a plugin. The plugin gets none of them unless a policy grants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
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
    pub allow: NetTemplate,
    /// The author's reason.
    pub why: String,
}

/// A request for a folder or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsRequest {
    /// The requested access.
    pub access: Access,
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
pub struct NetTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Setting(String),
}

/// Why a template is not a network pattern with the current settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
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
    Pattern(#[from] PatternError),
}

impl Mistake for TemplateError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotGiven { .. } => Some("give it in the configuration".to_owned()),
            Self::BadValue { .. } => Some("write it like https://api.example.com".to_owned()),
            Self::Pattern(error) => error.hint(),
        }
    }
}

impl Request {
    /// Returns the request of a plugin that asks for nothing.
    pub fn none() -> Self {
        Self {
            net: Vec::new(),
            fs: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            capabilities: Vec::new(),
        }
    }

    /// Returns the request of a script without a manifest.
    pub(crate) fn of_script() -> Self {
        let why = || "it is a script".to_owned();
        let folders = FsRequest { access: Access::ReadWrite, path: None, why: why() };
        let process = CapabilityRequest { wish: Wish::Process, why: why() };
        Self { fs: vec![folders], capabilities: vec![process], ..Self::none() }
    }

    /// Whether the plugin requests a capability.
    pub(crate) fn asks_for(&self, capability: Capability) -> bool {
        self.capabilities.iter().any(|request| request.wish.capability() == capability)
    }

    pub(crate) fn read(item: Item<'_>, settings: &SettingsSchema) -> Result<Self, SourceError> {
        item.section(|section| {
            Ok(Self {
                net: section.list("net", |item| NetRequest::read(item, settings))?,
                fs: section.list("fs", FsRequest::read)?,
                env: section.list("env", EnvRequest::read)?,
                secrets: section.list("secrets", SecretRequest::read)?,
                capabilities: read_all(section)?,
            })
        })
    }
}

impl NetRequest {
    fn read(item: Item<'_>, settings: &SettingsSchema) -> Result<Self, SourceError> {
        item.section(|section| {
            let allow = section.required("allow", |item| NetTemplate::read(item, settings))?;
            Ok(Self { allow, why: read_why(section)? })
        })
    }
}

impl FsRequest {
    fn read(item: Item<'_>) -> Result<Self, SourceError> {
        item.section(|section| {
            Ok(Self {
                access: section.required("access", Access::read)?,
                path: section.optional("path", read_path)?,
                why: read_why(section)?,
            })
        })
    }

    /// Whether the request is about an entry of a policy: it leaves the choice to the operator, or
    /// names the entry's path or a folder around it.
    pub(crate) fn covers(&self, entry: &FsEntry) -> bool {
        self.path.as_ref().is_none_or(|path| entry.mount.host.starts_with(path))
    }
}

impl EnvRequest {
    fn read(item: Item<'_>) -> Result<Self, SourceError> {
        item.section(|section| {
            let name = section.required("name", read_env_name)?;
            Ok(Self { name, why: read_why(section)? })
        })
    }
}

impl SecretRequest {
    fn read(item: Item<'_>) -> Result<Self, SourceError> {
        item.section(|section| {
            let name = section.required("name", Item::parsed)?;
            let reveal = section.optional("reveal", Item::boolean)?.unwrap_or(false);
            let header = SecretHeader::read(section)?;
            Ok(Self { name, reveal, header, why: read_why(section)? })
        })
    }

    /// Whether the request is about an entry of a policy. A request to read a secret also covers an
    /// entry that sends it; a request to send does not cover an entry that reveals.
    pub(crate) fn covers(&self, grant: &SecretGrant) -> bool {
        self.name == grant.name && (self.reveal || grant.way != SecretWay::Reveal)
    }
}

pub(crate) fn read_why(section: &mut Section<'_>) -> Result<String, SourceError> {
    section.required("why", Item::prose)
}

impl NetTemplate {
    fn read(item: Item<'_>, settings: &SettingsSchema) -> Result<Self, SourceError> {
        let place = item.place();
        let text = item.string()?;
        check_methods(&text).map_err(|mistake| place.clone().mistake(&mistake))?;
        let template = Self::split(&text);
        for name in template.settings() {
            if !settings.is_string(name) {
                return Err(no_such_setting(place.error(""), name, settings));
            }
        }
        match template.fill(&settings.with_defaults(&Map::new())) {
            // A template with settings that the user has not filled in yet cannot be checked.
            Ok(_) | Err(TemplateError::NotGiven { .. }) => Ok(template),
            Err(mistake @ (TemplateError::BadValue { .. } | TemplateError::Pattern(_))) => {
                Err(place.mistake(&mistake))
            }
        }
    }

    /// Splits at braces. An unmatched brace stays in the text, which no pattern accepts.
    fn split(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, open)| Some((before, open.split_once('}')?)))
        {
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Setting(name.to_owned()));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Self { parts }
    }

    fn settings(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Setting(name) => Some(name.as_str()),
        })
    }

    /// Returns the pattern with the values of settings filled in.
    ///
    /// # Errors
    ///
    /// A setting that is missing or has an unsuitable value, or a result that is not a pattern.
    pub fn fill(&self, settings: &Map<String, Value>) -> Result<NetPattern, TemplateError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Setting(name) => text.push_str(value_of(name, settings)?),
            }
        }
        Ok(text.parse()?)
    }
}

fn value_of<'s>(name: &str, settings: &'s Map<String, Value>) -> Result<&'s str, TemplateError> {
    let setting = || name.to_owned();
    let value = settings.get(name).ok_or_else(|| TemplateError::NotGiven { setting: setting() })?;
    let fit = |text: &&str| !text.is_empty() && !text.contains('*');
    let text = value.as_str().filter(fit);
    let text = text.ok_or_else(|| TemplateError::BadValue { setting: setting() })?;
    // The template continues with its own slash.
    Ok(text.strip_suffix('/').unwrap_or(text))
}

fn no_such_setting(error: SourceError, name: &str, settings: &SettingsSchema) -> SourceError {
    let known = settings.names().any(|known| known == name);
    let message = match known {
        true => format!("the setting {} is not of the type \"string\"", quoted(name)),
        false => format!("there is no setting {}", quoted(name)),
    };
    let error = SourceError { message, ..error };
    let strings = settings.names().filter(|known| settings.is_string(known));
    match nearest(name, strings).filter(|_| !known) {
        Some(near) => error.with_hint(format!("did you mean {{{near}}}?")),
        None => error.with_hint(format!("add [settings.{name}] with type = \"string\"")),
    }
}

impl fmt::Display for NetTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(piece) => f.write_str(piece)?,
                Part::Setting(name) => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}
