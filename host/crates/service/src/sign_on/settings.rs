//! The `[login]` table, checked.

use std::{collections::BTreeMap, time::Duration};

use openidconnect::IssuerUrl;
use sallyport_contract::{Secret, UserRole};
use sallyport_policy::is_this_machine;
use sallyport_runtime::config::{Env, LoginSettings};
use url::Url;

/// The settings of log-ins at an identity server.
#[derive(Debug, Clone)]
pub struct SignOnSettings {
    pub(super) issuer: IssuerUrl,
    pub(super) client_id: String,
    pub(super) client_secret: Option<Secret>,
    pub(super) scopes: Vec<String>,
    /// The claim that names the user.
    pub(super) user_claim: String,
    /// The claim that has the groups.
    pub(super) groups_claim: String,
    /// The role of each group.
    pub(super) roles: BTreeMap<String, UserRole>,
    /// Whether users are those of the tokens with the same names.
    pub(super) shares_users: bool,
    /// Longest log-in.
    pub(super) time: Duration,
}

/// Why nobody can log in at the identity server. The operator can fix each of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignOnSettingsError {
    /// The issuer is no address, or one without TLS.
    #[error("the issuer {0:?} is not an address that begins with https://")]
    Issuer(String),
    /// The client has no name.
    #[error("client_id is empty")]
    ClientId,
    /// The password of the client cannot be read.
    #[error("{0}")]
    Secret(String),
    /// No group has a role.
    #[error("no group has a role, so nobody could log in")]
    NoRoles,
    /// The system's certificates cannot be read.
    #[error("{0}")]
    Tls(String),
}

impl SignOnSettingsError {
    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Issuer(_) => {
                "write the issuer as the identity server names itself, such as \
                 https://id.example.com; http is for this machine alone"
            }
            Self::ClientId => "write the name that the identity server gave this service",
            Self::Secret(_) => {
                "name the password with client_secret, client_secret_file or client_secret_keyring"
            }
            Self::NoRoles => "add a table such as roles = { staff = \"user\" }",
            Self::Tls(_) => "install the certificates of your system",
        }
    }
}

impl SignOnSettings {
    /// Checks the settings, and reads the password of the client.
    ///
    /// # Errors
    ///
    /// The issuer is not an https address, no group has a role, or the password cannot be read.
    pub fn new(login: &LoginSettings, env: &Env) -> Result<Self, SignOnSettingsError> {
        let issuer = check_issuer(&login.issuer)?;
        if login.client_id.trim().is_empty() {
            return Err(SignOnSettingsError::ClientId);
        }
        if login.roles.is_empty() {
            return Err(SignOnSettingsError::NoRoles);
        }
        let roles = login.roles.iter().map(|(group, role)| (group.0.clone(), *role)).collect();
        Ok(Self {
            issuer,
            client_id: login.client_id.clone(),
            client_secret: login.client_secret(env).map_err(SignOnSettingsError::Secret)?,
            scopes: login.scopes.iter().map(|scope| scope.0.clone()).collect(),
            user_claim: login.user_claim().to_owned(),
            groups_claim: login.groups_claim().to_owned(),
            roles,
            shares_users: login.share_users,
            time: login.time(),
        })
    }

    pub(super) fn issuer_url(&self) -> &Url {
        self.issuer.url()
    }
}

fn check_issuer(text: &str) -> Result<IssuerUrl, SignOnSettingsError> {
    let refused = || SignOnSettingsError::Issuer(text.to_owned());
    let issuer = IssuerUrl::new(text.to_owned()).map_err(|_| refused())?;
    let url = issuer.url();
    let is_plain = url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && url.has_host();
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_this_machine(url);
    if is_plain && is_safe { Ok(issuer) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_has_tls_or_is_on_this_machine() {
        let rows = [
            ("https://id.example.com", true),
            ("https://id.example.com/realms/team", true),
            ("https://10.0.0.7:8443", true),
            ("http://127.0.0.1:3000", true),
            ("http://localhost:3000/", true),
            ("http://[::1]:3000", true),
            ("http://id.example.com", false),
            ("http://10.0.0.7", false),
            ("http://localhost.example", false),
            ("https://id.example.com?a=b", false),
            ("https://id.example.com#a", false),
            ("https://ann:pw@id.example.com", false),
            ("ftp://127.0.0.1", false),
            ("id.example.com", false),
            ("", false),
        ];
        for (text, is_accepted) in rows {
            assert_eq!(check_issuer(text).is_ok(), is_accepted, "{text}");
        }
    }
}
