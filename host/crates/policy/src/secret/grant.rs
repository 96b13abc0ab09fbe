//! Grants of secrets: the entries of a plugin's `secrets` list.

use std::fmt;

use super::{Injection, SecretName, SecretSources};
use crate::{
    document::{Item, Section},
    fix::toml_string,
    source::{Place, SourceError, nearest},
};

/// An entry of a policy's `secrets` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretGrant {
    /// The secret.
    pub name: SecretName,
    /// How the plugin uses it.
    pub way: SecretWay,
    /// The place of the entry.
    pub place: Place,
}

/// How a plugin uses a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretWay {
    /// The host adds it to requests; the plugin never sees it.
    Inject(Injection),
    /// The plugin may read it.
    Reveal,
}

impl SecretGrant {
    pub(crate) fn read(item: Item<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.section(|section| {
            let name = section.required("name", Item::parsed)?;
            let way = read_way(section)?;
            Ok(Self { name, way, place })
        })
    }

    /// Refuses an entry for a header that another entry fills with something else.
    pub(crate) fn check_beside(&self, others: &[Self]) -> Result<(), SourceError> {
        let competes = |other: &&Self| match (&self.way, &other.way) {
            (SecretWay::Inject(own), SecretWay::Inject(theirs)) => {
                own.competes(theirs) && (&self.name, own) != (&other.name, theirs)
            }
            _ => false,
        };
        match others.iter().find(competes) {
            None => Ok(()),
            Some(other) => {
                let message = format!("the entry at {} fills the same header", other.place);
                let hint = "a header has one value: leave out one of the two";
                Err(self.place.clone().error(message).with_hint(hint))
            }
        }
    }
}

fn read_way(section: &mut Section<'_>) -> Result<SecretWay, SourceError> {
    let reveal = section.optional("reveal", Item::boolean)?.unwrap_or(false);
    let to = section.optional("to", Item::parsed)?;
    match (reveal, to) {
        (false, Some(origin)) => Injection::read(origin, section).map(SecretWay::Inject),
        (true, None) => match ["header", "format"].into_iter().find_map(|key| section.take(key)) {
            None => Ok(SecretWay::Reveal),
            Some(item) => {
                let message =
                    format!("{} has no effect on a secret that is revealed", item.label());
                Err(item.place().error(message).with_hint("leave it out"))
            }
        },
        (true, Some(_)) => {
            let error = section.place().error("a secret cannot be sent and revealed at once");
            Err(error.with_hint("write two entries if the plugin is to read it as well"))
        }
        (false, None) => {
            let message = "an entry has to say where the secret is sent \"to\"";
            let error = section.lacks(&["to", "reveal"], message);
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
    let error = grant.place.clone().error(format!("no file says where the secret {name} is"));
    Err(match nearest(name.as_str(), sources.keys().map(SecretName::as_str)) {
        Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
        None => {
            error.with_hint(format!("add [secret.{name}] with \"env\", \"file\" or \"keyring\""))
        }
    })
}

impl SecretWay {
    /// The power that it gives a plugin over the secret of this name, for the user who decides.
    pub(crate) fn power(&self, name: &SecretName) -> String {
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
        match &self.way {
            SecretWay::Inject(injection) => write!(f, "{{ name = {name}, {injection} }}"),
            SecretWay::Reveal => write!(f, "{{ name = {name}, reveal = true }}"),
        }
    }
}
