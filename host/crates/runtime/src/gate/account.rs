//! Signs the requests of a plugin in to the account of the call's user.

use std::sync::Arc;

use sallyport_connections::AccountService;
use sallyport_contract::{AdmittedCall, CallFailure, PluginName, Secret};
use sallyport_sandbox::AccountCredential;

use super::{Gate, authorizer::PluginAuthorizer};
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
        let Some(service) = self.account_service() else { return Ok(None) };
        if let Some(key) = service.platform_key() {
            let key = key.cloned();
            return Ok(
                key.map(|key| self.gate().known_token(service, call.context().user(), "key", key))
            );
        }
        self.gate().user_token(service, call.context().user()).await.map(Some)
    }

    /// The header's value that signs a call in, if its plugin needs an account and has one.
    pub(crate) async fn account_credential(&self, call: &AdmittedCall) -> Option<Secret> {
        let token = self.account_token(call).await.ok().flatten()?;
        Some(token.into_credential().value)
    }

    /// The same, after the user could connect an account that is missing.
    ///
    /// # Errors
    ///
    /// The failure of the call, with the sentence that mends it.
    pub(crate) async fn ensured_credential(
        &self,
        call: &AdmittedCall,
    ) -> Result<Option<Secret>, CallFailure> {
        if let Some(credential) = self.account_credential(call).await {
            return Ok(Some(credential));
        }
        self.ensure_account(call).await?;
        Ok(self.account_credential(call).await)
    }

    /// Renews the account after a service refused a token. `refused` is the header that carried it.
    /// Returns whether there is another token.
    pub(crate) async fn renew_account_token(&self, call: &AdmittedCall, refused: &Secret) -> bool {
        let Some(service) = self.account_service() else { return false };
        let Some(token) = refused.expose().strip_prefix(TOKEN_SCHEME) else { return false };
        let Ok(desk) = self.connection_desk() else { return false };
        if service.platform_key().is_some() {
            return false;
        }
        desk.replace_token(service, call.context().user(), &Secret::new(token)).await.is_ok()
    }

    /// Marks the account as expired: a service refused its fresh token too, so only a new sign-in
    /// can help.
    pub(crate) async fn expire_account_token(&self, call: &AdmittedCall) {
        if let (Some(service), Ok(desk)) = (self.account_service(), self.connection_desk()) {
            // The next call finds out again.
            let _ = desk.expire(call.context().user(), &service.plugin).await;
        }
    }

    pub(super) fn account_service(&self) -> Option<&Arc<AccountService>> {
        let service = self.plugin_info().account.as_ref()?;
        let needs = service.needs_connection() || service.platform_key().is_some();
        needs.then_some(service)
    }

    pub(super) fn connection_desk(&self) -> Result<&Arc<ConnectionDesk>, AccountError> {
        self.gate().connection_desk(&self.plugin_info().manifest.name)
    }
}

impl Gate {
    /// The access token of a user. The redactor knows it from now on.
    ///
    /// # Errors
    ///
    /// The user has no account that can be used now.
    pub(crate) async fn user_token(
        &self,
        service: &Arc<AccountService>,
        user: &str,
    ) -> Result<AccountToken, AccountError> {
        let token = self.connection_desk(&service.plugin)?.usable_token(service, user).await?;
        Ok(self.known_token(service, user, "access token", token))
    }

    fn connection_desk(&self, plugin: &PluginName) -> Result<&Arc<ConnectionDesk>, AccountError> {
        let not_connected = || AccountError::NotConnected { plugin: plugin.clone() };
        self.connections.as_ref().ok_or_else(not_connected)
    }

    fn known_token(
        &self,
        service: &AccountService,
        user: &str,
        what: &str,
        value: Secret,
    ) -> AccountToken {
        let name = format!("{} {what}", service.plugin);
        let account = format!("{}\n{user}", service.plugin);
        self.set_account_token(account, name.clone(), value.clone());
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
