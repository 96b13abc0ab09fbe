//! Grants of secrets: the entries of a plugin's `secrets` list.

use std::fmt;

use super::{SecretInjection, SecretName, SecretSources};
use crate::{
    document::{TomlItem, TomlSection},
    source::{SourceError, SourceLocation, nearest_match},
    toml_text::toml_string,
};

/// An entry of a policy's `secrets` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretGrant {
    /// The secret.
    pub name: SecretName,
    /// How the plugin uses it.
    pub usage: SecretUse,
    /// The place of the entry.
    pub place: SourceLocation,
}

/// How a plugin uses a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretUse {
    /// The host adds it to requests; the plugin never sees it.
    Inject(SecretInjection),
    /// The plugin may read it.
    Reveal,
}

impl SecretGrant {
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.read_section(|section| {
            let name = section.read_required("name", TomlItem::read_parsed)?;
            let usage = read_secret_use(section)?;
            Ok(Self { name, usage, place })
        })
    }

    /// Refuses an entry for a header that another entry fills with something else.
    pub(crate) fn check_header_conflict(&self, others: &[Self]) -> Result<(), SourceError> {
        let competes = |other: &&Self| match (&self.usage, &other.usage) {
            (SecretUse::Inject(own), SecretUse::Inject(theirs)) => {
                own.conflicts_with(theirs) && (&self.name, own) != (&other.name, theirs)
            }
            _ => false,
        };
        match others.iter().find(competes) {
            None => Ok(()),
            Some(other) => {
                let message = format!("the entry at {} fills the same header", other.place);
                let hint = "a header has one value: leave out one of the two";
                Err(self.place.clone().into_error(message).with_hint(hint))
            }
        }
    }
}

fn read_secret_use(section: &mut TomlSection<'_>) -> Result<SecretUse, SourceError> {
    let reveal = section.read_optional("reveal", TomlItem::read_bool)?.unwrap_or(false);
    let to = section.read_optional("to", TomlItem::read_parsed)?;
    match (reveal, to) {
        (false, Some(origin)) => SecretInjection::from_toml(origin, section).map(SecretUse::Inject),
        (true, None) => {
            match ["header", "format"].into_iter().find_map(|key| section.take_item(key)) {
                None => Ok(SecretUse::Reveal),
                Some(item) => {
                    let message =
                        format!("{} has no effect on a secret that is revealed", item.label());
                    Err(item.place().into_error(message).with_hint("leave it out"))
                }
            }
        }
        (true, Some(_)) => {
            let error = section.place().into_error("a secret cannot be sent and revealed at once");
            Err(error.with_hint("write two entries if the plugin is to read it as well"))
        }
        (false, None) => {
            let message = "an entry has to say where the secret is sent \"to\"";
            let error = section.missing_keys_error(&["to", "reveal"], message);
            Err(match error.hint {
                Some(_) => error,
                None => error.with_hint("add to = \"https://api.example.com\" and a \"header\""),
            })
        }
    }
}

/// Refuses grants of secrets that have no source.
pub(crate) fn check_sources<'t>(
    grants: impl IntoIterator<Item = &'t SecretGrant>,
    sources: &SecretSources,
) -> Result<(), SourceError> {
    let Some(grant) = grants.into_iter().find(|grant| !sources.contains_key(&grant.name)) else {
        return Ok(());
    };
    let name = &grant.name;
    let error = grant.place.clone().into_error(format!("no file says where the secret {name} is"));
    Err(match nearest_match(name.as_str(), sources.keys().map(SecretName::as_str)) {
        Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
        None => {
            error.with_hint(format!("add [secret.{name}] with \"env\", \"file\" or \"keyring\""))
        }
    })
}

impl SecretUse {
    /// The power that it gives a plugin over the secret of this name, for the user who decides.
    pub(crate) fn permission_line(&self, name: &SecretName) -> String {
        match self {
            Self::Inject(injection) => {
                format!("have the secret {name} sent to {}", injection.origin())
            }
            Self::Reveal => format!("read the secret {name}"),
        }
    }
}

impl fmt::Display for SecretGrant {
    /// The entry as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = toml_string(self.name.as_str());
        match &self.usage {
            SecretUse::Inject(injection) => write!(f, "{{ name = {name}, {injection} }}"),
            SecretUse::Reveal => write!(f, "{{ name = {name}, reveal = true }}"),
        }
    }
}
