//! `[store]`: where everything is kept that outlives a process.

use std::{fmt, path::PathBuf};

use sallyport_contract::Secret;
use sallyport_store::{DatabaseAddress, StoreError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Env, HostSettings,
    model::{read_stored_key, stored_key_path, stored_key_source},
};

/// The name of the address in messages, and where it is removed from texts.
const SECRET_NAME: &str = "store.url";

/// The `[store]` table. Without an address, the store is in the home of this program.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// The address of a PostgreSQL database, postgres://USER:PASSWORD@HOST:PORT/DATABASE;
    /// `${VARIABLE}` takes it from the environment.
    #[schemars(extend("x-variables" = true))]
    url: Option<String>,
    /// The file that contains the address, an absolute path or one below ~; only its owner may be
    /// allowed to read it.
    #[schemars(extend("x-variables" = true))]
    url_file: Option<String>,
    /// The entry of the system's keyring that contains the address: SERVICE/ACCOUNT.
    url_keyring: Option<String>,
}

impl HostSettings {
    /// The address of the database that the configuration names, if it names one.
    ///
    /// # Errors
    ///
    /// The address cannot be read, or has a mistake.
    pub fn database_address(&self) -> Result<Option<DatabaseAddress>, StoreError> {
        self.store.as_ref().map_or(Ok(None), |store| store.address(&self.env))
    }

    /// The folder for what stays on this machine where the store is in a database elsewhere.
    pub fn database_folder(&self) -> PathBuf {
        self.paths.state.join("postgres")
    }
}

impl StoreSettings {
    /// The address of the database; `None` if the table names none.
    ///
    /// # Errors
    ///
    /// The address cannot be read, is in several places, or is not that of a PostgreSQL database.
    pub fn address(&self, env: &Env) -> Result<Option<DatabaseAddress>, StoreError> {
        let file = self.url_file.as_deref();
        let keyring = self.url_keyring.as_deref();
        let places = [self.url.as_deref(), file, keyring].into_iter().flatten().count();
        if places > 1 {
            let why = "keep one of url, url_file and url_keyring".to_owned();
            return Err(StoreError::InvalidAddress { why });
        }
        let stored = stored_key_source(file, keyring, env)
            .map(|source| read_stored_key(SECRET_NAME, &source, env))
            .transpose()
            .map_err(|why| StoreError::InvalidAddress { why })?;
        let text = self.url.as_deref().or(stored.as_ref().map(Secret::expose));
        text.map(DatabaseAddress::parse).transpose()
    }

    /// The file that contains the address, if the table names one.
    pub(super) fn secret_path(&self, env: &Env) -> Option<PathBuf> {
        stored_key_path(self.url_file.as_deref(), env)
    }

    /// The address and its password, with the names of their sources. They are removed from all
    /// texts.
    pub(super) fn secrets(&self, env: &Env) -> Vec<(String, Secret)> {
        let Ok(Some(address)) = self.address(env) else { return Vec::new() };
        let whole = address.secret().clone();
        let password =
            address.password().map(|password| (format!("{SECRET_NAME} password"), password));
        [(SECRET_NAME.to_owned(), whole)].into_iter().chain(password).collect()
    }
}

impl fmt::Debug for StoreSettings {
    /// Leaves out the address, which has a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSettings").field("url_file", &self.url_file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::config::ConfigFlags;

    #[test]
    fn the_address_is_in_one_place_guarded_and_redacted() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("private", 0o600), ("open", 0o644)] {
            let path = folder.path().join(name);
            fs::write(&path, "postgres://ann:password-4711@db/sp\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let known = Ok(Some("postgres://ann@db/sp"));
        let rows = [
            ("", Ok(None)),
            ("url = '${DATABASE}'", known),
            ("url_file = '~/private'", known),
            ("url = 'postgres://ann:password-4711@db/sp'", known),
            ("url = ' '", Err("not the address of a PostgreSQL database")),
            ("url = 'mysql://db/sp'", Err("not the address of a PostgreSQL database")),
            ("url_file = '~/open'", Err("others may open it")),
            ("url_file = '~/missing'", Err("it is not there")),
            ("url = 'postgres://db'\nurl_file = '~/private'", Err("keep one of")),
        ];
        for (keys, want) in rows {
            let config = folder.path().join("sallyport.toml");
            fs::write(&config, format!("[store]\n{keys}")).unwrap();
            let home = folder.path().to_str().unwrap();
            let url = "postgres://ann:password-4711@db/sp";
            let env = Env::from_pairs([("HOME", home), ("DATABASE", url)]);
            let flags = ConfigFlags {
                config: Some(config),
                folder: Some(folder.path().to_owned()),
                ..ConfigFlags::default()
            };
            let settings = HostSettings::resolve(&flags, env).unwrap();
            let found = settings.store.as_ref().unwrap().address(&settings.env);
            match (&found, want) {
                (Ok(found), Ok(want)) => {
                    assert_eq!(found.as_ref().map(DatabaseAddress::shown), want, "{keys}");
                }
                (Err(found), Err(want)) => {
                    assert!(found.to_string().contains(want), "{keys}: {found}");
                    assert!(found.hint().is_some(), "{keys}");
                }
                _ => panic!("{keys}: {found:?}"),
            }
            let secrets: Vec<_> = settings.server_keys().collect();
            assert_eq!(secrets.len(), if want == known { 2 } else { 0 }, "{keys}: {secrets:?}");
            let is_guarded = settings.policy.host_files.contains(&folder.path().join("private"));
            assert_eq!(is_guarded, keys.contains("~/private"), "{keys}");
            assert!(!format!("{settings:?}").contains("4711"), "{keys}");
            let shown = settings.setting_rows().into_iter().map(|row| row.value.to_string());
            assert!(!shown.collect::<String>().contains("4711"), "{keys}");
        }
    }
}
