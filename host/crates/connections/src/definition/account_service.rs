//! A service at which users have accounts, as a plugin signs in to it.

use sallyport_contract::{PluginName, Secret};

use super::{AuthConfig, AuthType};

/// A service at which users have accounts, as a plugin signs in to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountService {
    /// The plugin, which owns the accounts.
    pub plugin: PluginName,
    /// The name of the service that people see.
    pub shown_name: String,
    /// How a user signs in.
    pub auth: AuthConfig,
    /// Whether its author says that no user needs an account.
    pub is_system: bool,
}

impl AccountService {
    /// Whether a user has to connect an account.
    pub fn needs_connection(&self) -> bool {
        !self.is_system && self.auth.auth_type != AuthType::PlatformKey
    }

    /// The key of a service that needs no user's account. `None` if it needs one, `Some(None)` if the
    /// policy sends the key.
    pub fn platform_key(&self) -> Option<Option<&Secret>> {
        let is_platform = self.auth.auth_type == AuthType::PlatformKey;
        is_platform.then_some(self.auth.client_secret.as_ref())
    }
}
