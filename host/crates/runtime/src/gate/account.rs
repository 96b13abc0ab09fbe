//! Signs the requests of a plugin in to the account of the call's user.

use std::sync::Arc;

use sallyport_connections::{AuthType, Definition};
use sallyport_contract::{AdmittedCall, LOCAL_USER, Secret};
use sallyport_sandbox::AccountCredential;

use super::authorizer::PluginAuthorizer;
use crate::connections::{AccountError, ConnectionDesk};

/// The header that carries a token.
const TOKEN_HEADER: &str = "authorization";

/// What is written before a token in its header.
const TOKEN_SCHEME: &str = "Bearer ";

/// The token that signs the requests of a call in.
#[derive(Debug, Clone)]
pub(crate) struct AccountToken {
    /// Its name in records.
    name: String,
    value: Secret,
}

impl PluginAuthorizer {
    /// The token of the account that a call needs; `None` if its plugin needs no account, or if the
    /// policy sends its key. The redactor knows the token from now on.
    ///
    /// # Errors
    ///
    /// The user has no account that can be used now.
    pub(crate) async fn account_token(
        &self,
        call: &AdmittedCall,
    ) -> Result<Option<AccountToken>, AccountError> {
        let Some(definition) = self.definition_with_account() else { return Ok(None) };
        if let Some(key) = platform_key(definition) {
            let key = key.cloned();
            return Ok(key.map(|key| self.known_token(definition, user_of(call), "key", key)));
        }
        let token = self.connection_desk()?.usable_token(definition, user_of(call)).await?;
        Ok(Some(self.known_token(definition, user_of(call), "access token", token)))
    }

    /// Renews the account after a service refused a token. `refused` is the header that carried it.
    /// Returns whether there is another token.
    pub(super) async fn renew_account_token(&self, call: &AdmittedCall, refused: &Secret) -> bool {
        let Some(definition) = self.definition_with_account() else { return false };
        let Some(token) = refused.expose().strip_prefix(TOKEN_SCHEME) else { return false };
        let Ok(desk) = self.connection_desk() else { return false };
        if platform_key(definition).is_some() {
            return false;
        }
        desk.replace_token(definition, user_of(call), &Secret::new(token)).await.is_ok()
    }

    /// Marks the account as expired: a service refused its fresh token too, so only a new sign-in
    /// can help.
    pub(super) async fn expire_account_token(&self, call: &AdmittedCall) {
        if let (Some(definition), Ok(desk)) =
            (self.definition_with_account(), self.connection_desk())
        {
            // The next call finds out again.
            let _ = desk.expire(user_of(call), &definition.name).await;
        }
    }

    pub(super) fn definition_with_account(&self) -> Option<&Arc<Definition>> {
        let definition = self.plugin_info().definition.as_ref()?;
        let needs = definition.needs_connection() || platform_key(definition).is_some();
        needs.then_some(definition)
    }

    pub(super) fn connection_desk(&self) -> Result<&Arc<ConnectionDesk>, AccountError> {
        self.gate().connections.as_ref().ok_or_else(|| AccountError::NotConnected {
            plugin: self.plugin_info().manifest.name.clone(),
        })
    }

    fn known_token(
        &self,
        definition: &Definition,
        user: &str,
        what: &str,
        value: Secret,
    ) -> AccountToken {
        let name = format!("{} {what}", definition.name);
        let account = format!("{}\n{user}", definition.name);
        self.gate().set_account_token(account, name.clone(), value.clone());
        AccountToken { name, value }
    }
}

impl AccountToken {
    /// The header that carries it.
    pub(crate) fn into_credential(self) -> AccountCredential {
        let value = Secret::new(format!("{TOKEN_SCHEME}{}", self.value.expose()));
        AccountCredential { name: self.name, header: TOKEN_HEADER, value }
    }
}

/// The key of a plugin that needs no user's account. `None` if it needs one, `Some(None)` if the
/// policy sends the key.
fn platform_key(definition: &Definition) -> Option<Option<&Secret>> {
    let auth = definition.auth.as_ref()?;
    (auth.auth_type == AuthType::PlatformKey).then_some(auth.client_secret.as_ref())
}

pub(super) fn user_of(call: &AdmittedCall) -> &str {
    call.context().user_id.as_deref().unwrap_or(LOCAL_USER)
}
