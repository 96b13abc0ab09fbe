//! Connects an account: the user signs in at the service, in a browser here or on another device.

use std::{sync::Arc, time::Duration};

use sallyport_connections::{
    AuthConfig, Definition,
    oauth::{
        self, BrowserLogin, CallbackError, CallbackListener, DeviceLogin, OAuthError, TokenSet,
    },
};

use super::{AccountError, ConnectionDesk};
use crate::gate::now_ms;

/// Longest wait for a user to sign in. After it, most services have forgotten the sign-in too.
pub const LOGIN_TIME_MAX: Duration = Duration::from_secs(600);

/// Why no account was connected.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The plugin needs none.
    #[error("{0} needs no account")]
    NotNeeded(String),
    /// The browser brought no code.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The account cannot be had or kept.
    #[error(transparent)]
    Account(#[from] AccountError),
}

/// A sign-in in a browser that waits for its answer.
pub struct PendingBrowserLogin {
    listener: CallbackListener,
    login: BrowserLogin,
}

/// A connected account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// The permissions that the actions need and the user did not give.
    pub missing_scopes: Vec<String>,
    /// Whether the account is refreshed by itself.
    pub has_refresh_token: bool,
}

/// Shows the user a sign-in that a call waits for.
pub trait SignInPresenter: Send + Sync {
    /// Opens the page, or shows its address.
    fn show_page(&self, definition: &Definition, address: &str);

    /// Reports that the account is connected.
    fn show_connected(&self, definition: &Definition, connected: &Connected);
}

impl PendingBrowserLogin {
    /// Begins a sign-in.
    ///
    /// # Errors
    ///
    /// The plugin needs no account, or its port is taken.
    pub async fn begin(definition: &Definition) -> Result<Self, LoginError> {
        let auth = login_config(definition)?;
        let own_address = auth.redirect_uri.as_deref();
        let listener = CallbackListener::open(definition.name.as_str(), own_address).await?;
        let login = BrowserLogin::begin(auth, listener.redirect()).map_err(AccountError::from)?;
        Ok(Self { listener, login })
    }

    /// The address that the user has to open.
    pub fn address(&self) -> &str {
        self.login.url.as_str()
    }

    /// Waits for the user, and connects the account.
    ///
    /// # Errors
    ///
    /// The user or the service refuses, nobody signs in, or the account cannot be kept.
    pub async fn finish(
        self,
        desk: &Arc<ConnectionDesk>,
        definition: &Definition,
        user: &str,
        time_max: Duration,
    ) -> Result<Connected, LoginError> {
        let auth = login_config(definition)?;
        let code = self.listener.wait_for_code(&self.login, time_max).await?;
        let http = desk.http(definition).map_err(AccountError::from)?;
        let tokens = self.login.finish(auth, http, &code, now_ms()).await;
        keep_account(desk, definition, user, tokens).await
    }
}

/// Begins a sign-in on another device.
///
/// # Errors
///
/// The plugin needs no account, or the service has no such sign-in.
pub async fn begin_device_login(
    desk: &Arc<ConnectionDesk>,
    definition: &Definition,
) -> Result<DeviceLogin, LoginError> {
    let auth = login_config(definition)?;
    let http = desk.http(definition).map_err(AccountError::from)?;
    Ok(DeviceLogin::begin(auth, http).await.map_err(AccountError::from)?)
}

/// Waits for the user on the other device, and connects the account.
///
/// # Errors
///
/// The user or the service refuses, nobody signs in, or the account cannot be kept.
pub async fn finish_device_login(
    login: DeviceLogin,
    desk: &Arc<ConnectionDesk>,
    definition: &Definition,
    user: &str,
) -> Result<Connected, LoginError> {
    let auth = login_config(definition)?;
    let http = desk.http(definition).map_err(AccountError::from)?;
    let tokens = login.finish(auth, http, LOGIN_TIME_MAX, now_ms).await;
    keep_account(desk, definition, user, tokens).await
}

fn login_config(definition: &Definition) -> Result<&AuthConfig, LoginError> {
    let auth = definition.auth.as_ref().filter(|_| definition.needs_connection());
    auth.ok_or_else(|| LoginError::NotNeeded(definition.name.to_string()))
}

async fn keep_account(
    desk: &Arc<ConnectionDesk>,
    definition: &Definition,
    user: &str,
    tokens: Result<TokenSet, OAuthError>,
) -> Result<Connected, LoginError> {
    let tokens = tokens.map_err(AccountError::from)?;
    let auth = login_config(definition)?;
    let http = desk.http(definition).map_err(AccountError::from)?;
    let profile = oauth::fetch_profile(auth, http, &tokens.access_token).await;
    desk.save(definition, user, &tokens, profile.unwrap_or_else(|| "{}".to_owned())).await?;
    let missing = tokens.missing_scopes(&auth.required_scopes);
    Ok(Connected {
        missing_scopes: missing.into_iter().map(str::to_owned).collect(),
        has_refresh_token: tokens.refresh_token.is_some(),
    })
}
