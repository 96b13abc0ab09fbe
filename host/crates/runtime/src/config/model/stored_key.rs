//! Keys of models that are stored in a file or in the system's keyring.
//!
//! A key is read when its model is chosen, because a file or a keyring may be slow and the keys of
//! all other models need not be in memory. One that cannot be read is no mistake of the
//! configuration: other models may still be used. The problem is reported once the model is used.

use std::path::{Path, PathBuf};

use sallyport_contract::Secret;
use sallyport_policy::SecretSource;

use crate::{
    config::{Env, check_absolute, expand_home, file::ModelEntry},
    secrets::Vault,
};

/// The service of a keyring entry that names none.
pub const KEYRING_SERVICE: &str = "sallyport";

impl ModelEntry {
    /// Reads the key that the table stores elsewhere; `None` if it names no place. `name` is that of
    /// the table.
    pub(super) fn read_stored_key(&self, name: &str, env: &Env) -> Option<Result<Secret, String>> {
        let (file, keyring) = (self.key_file.as_deref(), self.key_keyring.as_deref());
        let source = stored_key_source(file, keyring, env)?;
        Some(read_stored_key(&format!("model.{name}.key"), &source, env))
    }

    /// The file that contains the key, if the table names one.
    pub(in crate::config) fn key_path(&self, env: &Env) -> Option<PathBuf> {
        stored_key_path(self.key_file.as_deref(), env)
    }
}

/// Where a key is stored, by the keys of a table that name a file and an entry of the keyring.
pub(in crate::config) fn stored_key_source(
    file: Option<&str>,
    keyring: Option<&str>,
    env: &Env,
) -> Option<SecretSource> {
    stored_key_path(file, env).map(SecretSource::File).or_else(|| {
        let entry = keyring?;
        let (service, account) = entry.split_once('/').unwrap_or((KEYRING_SERVICE, entry));
        Some(SecretSource::Keyring { service: service.to_owned(), account: account.to_owned() })
    })
}

/// The file that contains a key, by the key of a table that names it.
pub(in crate::config) fn stored_key_path(file: Option<&str>, env: &Env) -> Option<PathBuf> {
    file.map(|path| expand_home(path, env))
}

/// Reads a stored key. `name` is the one that messages give it.
///
/// # Errors
///
/// A sentence with the reason why the key cannot be read.
pub(in crate::config) fn read_stored_key(
    name: &str,
    source: &SecretSource,
    env: &Env,
) -> Result<Secret, String> {
    if let SecretSource::File(path) = source {
        check_absolute(path)?;
    }
    Vault::new(env.clone()).get(name, source).map_err(|error| error.to_string())
}

/// Returns the folder in which the guided setup stores keys.
pub(in crate::config) fn key_folder(config_folder: &Path) -> PathBuf {
    config_folder.join("keys")
}

/// Returns the file in which the guided setup stores the key of a provider.
pub fn default_key_file(config_folder: &Path, provider: &str) -> PathBuf {
    key_folder(config_folder).join(provider)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::config::{ConfigFlags, HostSettings, ModelChoice};

    fn resolve(folder: &Path, model: &str) -> HostSettings {
        let config = folder.join("sallyport.toml");
        fs::write(&config, format!("[model.m]\nprovider = 'openai'\nmodel = 'm'\n{model}"))
            .unwrap();
        let home = folder.to_str().unwrap();
        let env = Env::from_pairs([("HOME", home), ("OPENAI_API_KEY", "sk-of-another-account")]);
        let flags = ConfigFlags {
            config: Some(config),
            folder: Some(folder.to_owned()),
            ..ConfigFlags::default()
        };
        HostSettings::resolve(&flags, env).unwrap()
    }

    /// With an unreadable key, requests went to the account of the variable.
    #[test]
    fn a_stored_key_is_used_and_its_problems_are_kept_for_later() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("private", 0o600), ("open", 0o644)] {
            fs::write(folder.path().join(name), "sk-stored\n").unwrap();
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode))
                .unwrap();
        }
        for (table, want, problem) in [
            ("key_file = '~/private'", Some("sk-stored"), ""),
            ("key_file = '~/open'", None, "others may open it"),
            ("key_file = '~/missing'", None, "it is not there"),
            ("key_file = 'private'", None, "not an absolute path"),
            ("key_keyring = 'sallyport-test/no-such-entry'", None, "model.m.key"),
        ] {
            let settings = resolve(folder.path(), table);
            let ModelChoice::Endpoint(endpoint) = &settings.model else { panic!("{table}") };
            let key = endpoint.key.as_ref().map(|key| key.expose().to_owned());
            assert_eq!(key.as_deref(), want, "{table}");
            let found = settings.chosen_model.key_problem.unwrap_or_default();
            assert!(found.contains(problem) && found.is_empty() == problem.is_empty(), "{found}");
        }
    }

    /// A plugin that could read the file would have the key.
    #[test]
    fn the_file_of_a_key_is_guarded_and_its_value_redacted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private");
        fs::write(&path, "sk-stored").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let settings = resolve(folder.path(), "key_file = '~/private'");
        assert!(settings.policy.host_files.contains(&path), "{:?}", settings.policy.host_files);
        let keys: Vec<_> = settings.server_keys().map(|(_, key)| key.expose().to_owned()).collect();
        assert!(keys.iter().any(|key| key == "sk-stored"), "{keys:?}");
    }
}
