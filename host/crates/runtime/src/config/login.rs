//! `[login]`: the identity server at which people log in to the console of the service.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use sallyport_contract::{Secret, UserRole};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Env,
    model::{read_stored_key, stored_key_path, stored_key_source},
    values::{NonblankText, TimeLimit},
};

/// The claim that names the user, unless the configuration names another. Only this one is unique
/// and never given to another person, as OpenID Connect defines it.
const USER_CLAIM: &str = "sub";

/// The claim that has the groups of the user, unless the configuration names another.
const GROUPS_CLAIM: &str = "groups";

/// Longest log-in, unless the configuration sets another time: a working day.
const LOGIN_TIME: Duration = Duration::from_secs(8 * 60 * 60);

/// The name of the client's password in messages, and where it is removed from texts.
const SECRET_NAME: &str = "login.client_secret";

/// The `[login]` table.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginSettings {
    /// The address of the identity server, as it names itself: https, or http on this machine.
    #[schemars(extend("x-variables" = true))]
    pub issuer: String,
    /// The name of this service at the identity server.
    #[schemars(extend("x-variables" = true))]
    pub client_id: String,
    /// The password of this service at the identity server; `${VARIABLE}` takes it from the
    /// environment.
    #[schemars(extend("x-variables" = true))]
    client_secret: Option<String>,
    /// The file that contains the password, an absolute path or one below ~; only its owner may be
    /// allowed to read it.
    #[schemars(extend("x-variables" = true))]
    client_secret_file: Option<String>,
    /// The entry of the system's keyring that contains the password: SERVICE/ACCOUNT.
    client_secret_keyring: Option<String>,
    /// What is asked for besides openid.
    #[serde(default)]
    pub scopes: Vec<NonblankText>,
    /// The claim that names the user; without it, sub.
    user_claim: Option<NonblankText>,
    /// The claim that has the groups of the user, as a text or a list; without it, groups.
    groups_claim: Option<NonblankText>,
    /// The role of each group. A user without any of these groups is refused.
    #[serde(default)]
    pub roles: BTreeMap<NonblankText, UserRole>,
    /// Whether a user is the same as the user of a token with that name.
    #[serde(default)]
    pub share_users: bool,
    /// Longest time until a user has to log in again; without it, 8h.
    time: Option<TimeLimit>,
}

impl LoginSettings {
    /// The claim that names the user.
    pub fn user_claim(&self) -> &str {
        self.user_claim.as_deref().unwrap_or(USER_CLAIM)
    }

    /// The claim that has the groups of the user.
    pub fn groups_claim(&self) -> &str {
        self.groups_claim.as_deref().unwrap_or(GROUPS_CLAIM)
    }

    /// Longest log-in.
    pub fn time(&self) -> Duration {
        self.time.map_or(LOGIN_TIME, |time| time.0)
    }

    /// The password of this service at the identity server; `None` if it has none.
    ///
    /// # Errors
    ///
    /// A sentence: the password cannot be read, or it is in several places.
    pub fn client_secret(&self, env: &Env) -> Result<Option<Secret>, String> {
        let file = self.client_secret_file.as_deref();
        let keyring = self.client_secret_keyring.as_deref();
        match (&self.client_secret, stored_key_source(file, keyring, env)) {
            (Some(secret), None) if !secret.trim().is_empty() => {
                Ok(Some(Secret::new(secret.trim().to_owned())))
            }
            (Some(_), None) => Err("client_secret is empty".to_owned()),
            (None, Some(_)) if file.is_some() && keyring.is_some() => Err(TWO_PLACES.to_owned()),
            (None, Some(source)) => read_stored_key(SECRET_NAME, &source, env).map(Some),
            (Some(_), Some(_)) => Err(TWO_PLACES.to_owned()),
            (None, None) => Ok(None),
        }
    }

    /// The file that contains the password, if the table names one.
    pub(super) fn secret_path(&self, env: &Env) -> Option<PathBuf> {
        stored_key_path(self.client_secret_file.as_deref(), env)
    }

    /// The password with the name of its source. It is removed from all texts.
    pub(super) fn secrets(&self, env: &Env) -> impl Iterator<Item = (String, Secret)> {
        let secret = self.client_secret(env).ok().flatten();
        secret.into_iter().map(|secret| (SECRET_NAME.to_owned(), secret))
    }
}

const TWO_PLACES: &str = "keep one of client_secret, client_secret_file and client_secret_keyring";

impl fmt::Debug for LoginSettings {
    /// Leaves out the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSettings")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::config::{ConfigFlags, HostSettings};

    #[test]
    fn the_password_is_in_one_place_guarded_and_redacted() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("private", 0o600), ("open", 0o644)] {
            fs::write(folder.path().join(name), "password-4711\n").unwrap();
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode))
                .unwrap();
        }
        let known = Ok(Some("password-4711"));
        let rows = [
            ("", Ok(None)),
            ("client_secret = '${WORD}'", known),
            ("client_secret_file = '~/private'", known),
            ("client_secret = ' '", Err("is empty")),
            ("client_secret_file = '~/open'", Err("others may open it")),
            ("client_secret_file = '~/missing'", Err("it is not there")),
            ("client_secret_file = 'private'", Err("not an absolute path")),
            ("client_secret_keyring = 'sallyport-test/no-such-entry'", Err("login.client_secret")),
            ("client_secret = 'a'\nclient_secret_file = '~/private'", Err("keep one of")),
            ("client_secret_file = '~/private'\nclient_secret_keyring = 'a/b'", Err("keep one")),
        ];
        for (keys, want) in rows {
            let config = folder.path().join("sallyport.toml");
            let table = format!("[login]\nissuer = 'https://id.example'\nclient_id = 'a'\n{keys}");
            fs::write(&config, table).unwrap();
            let home = folder.path().to_str().unwrap();
            let env = Env::from_pairs([("HOME", home), ("WORD", "password-4711")]);
            let flags = ConfigFlags {
                config: Some(config),
                folder: Some(folder.path().to_owned()),
                ..ConfigFlags::default()
            };
            let settings = HostSettings::resolve(&flags, env).unwrap();
            let login = settings.login.as_ref().unwrap();
            let found = login.client_secret(&settings.env);
            match (&found, want) {
                (Ok(found), Ok(want)) => {
                    assert_eq!(found.as_ref().map(Secret::expose), want, "{keys}");
                }
                (Err(found), Err(want)) => assert!(found.contains(want), "{keys}: {found}"),
                _ => panic!("{keys}: {found:?}"),
            }
            let secrets: Vec<_> = settings.server_keys().collect();
            assert_eq!(secrets.len(), usize::from(want == known), "{keys}: {secrets:?}");
            let is_guarded = settings.policy.host_files.contains(&folder.path().join("private"));
            assert_eq!(is_guarded, keys.contains("~/private"), "{keys}");
            assert!(!format!("{login:?}").contains("4711"), "{login:?}");
        }
    }
}
