//! Sources of secrets: the `[secret.NAME]` tables.

use std::path::{Path, PathBuf};

use super::{SecretName, SecretSources};
use crate::{
    document::{TomlItem, TomlSection},
    environment::read_env_name,
    folder::normalize_host_path,
    source::{HintedError, SourceError, SourceLocation, quoted},
    tier::PolicyTier,
};

/// Longest name of a service or an account in a keyring, in bytes: enough for an email address.
const KEYRING_NAME_BYTES_MAX: usize = 256;

/// The place where the host finds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file, by its absolute path.
    File(PathBuf),
    /// The keyring of the operating system.
    Keyring {
        /// The service that the value is for.
        service: String,
        /// The account at that service.
        account: String,
    },
}

/// A `[secret.NAME]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretEntry {
    pub(crate) name: SecretName,
    pub(crate) source: SecretSource,
    pub(crate) place: SourceLocation,
}

#[derive(Debug, thiserror::Error)]
#[error("{} does not name a service and an account", quoted(text))]
struct KeyringError {
    text: String,
}

impl HintedError for KeyringError {
    fn hint(&self) -> Option<String> {
        Some("write it as SERVICE/ACCOUNT".to_owned())
    }
}

impl SecretEntry {
    pub(crate) fn from_toml(
        name: TomlItem<'_>,
        table: TomlItem<'_>,
        home: Option<&Path>,
        tier: PolicyTier,
    ) -> Result<Self, SourceError> {
        let place = name.place();
        let name = name.read_parsed()?;
        let source =
            tier.check_may_grant(table)?.read_section(|section| read_source(section, home))?;
        Ok(Self { name, source, place })
    }

    /// Combines the tables of all files.
    ///
    /// # Errors
    ///
    /// Two tables for one name: it would be unclear which source applies.
    pub(crate) fn merge_entries(
        entries: impl IntoIterator<Item = Self>,
    ) -> Result<SecretSources, SourceError> {
        let mut sources = SecretSources::new();
        for entry in entries {
            if let Some(other) = sources.get(&entry.name) {
                let message = format!("the secret {} has a source at {}", entry.name, other.place);
                let hint = "a secret has one source: leave out one of the two";
                return Err(entry.place.into_error(message).with_hint(hint));
            }
            sources.insert(entry.name.clone(), entry);
        }
        Ok(sources)
    }
}

fn read_source(
    section: &mut TomlSection<'_>,
    home: Option<&Path>,
) -> Result<SecretSource, SourceError> {
    let env = section.read_optional("env", |item| read_env_name(item).map(SecretSource::Env))?;
    let file = section.read_optional("file", |item| read_file(item, home))?;
    let keyring = section.read_optional("keyring", read_keyring)?;
    let mut given = [env, file, keyring].into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(source), None) => Ok(source),
        (Some(_), Some(_)) => {
            let error = section.place().into_error("a secret cannot have two sources");
            Err(error.with_hint("keep one of \"env\", \"file\" and \"keyring\""))
        }
        (None, _) => {
            let message = "a secret has to say \"env\", \"file\" or \"keyring\"";
            let error = section.missing_keys_error(&["env", "file", "keyring"], message);
            Err(match error.hint {
                Some(_) => error,
                None => error.with_hint("name the place of the value, never the value itself"),
            })
        }
    }
}

fn read_file(item: TomlItem<'_>, home: Option<&Path>) -> Result<SecretSource, SourceError> {
    let place = item.place();
    let path = normalize_host_path(&item.read_string()?, home)
        .map_err(|parse_error| place.into_hinted_error(&parse_error))?;
    Ok(SecretSource::File(path))
}

fn read_keyring(item: TomlItem<'_>) -> Result<SecretSource, SourceError> {
    let place = item.place();
    let text = item.read_string()?;
    let fits = |name: &str| {
        !name.trim().is_empty()
            && name.len() <= KEYRING_NAME_BYTES_MAX
            && !name.chars().any(char::is_control)
    };
    match text.split_once('/') {
        Some((service, account)) if fits(service) && fits(account) => {
            Ok(SecretSource::Keyring { service: service.to_owned(), account: account.to_owned() })
        }
        Some(_) | None => Err(place.into_hinted_error(&KeyringError { text })),
    }
}

/// Returns the proposed table for a secret without a source: the system's keyring.
pub(crate) fn secret_source_toml(name: &SecretName) -> String {
    format!("[secret.{name}]\nkeyring = \"sallyport/{name}\"\n")
}
