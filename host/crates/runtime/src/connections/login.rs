//! Connects an account: the user signs in at the service, in a browser here or on another device.

use std::{sync::Arc, time::Duration};

use sallyport_connections::{
    AccountService,
    oauth::{
        self, BrowserLogin, CallbackError, CallbackListener, DeviceLogin, OAuthError, TokenSet,
    },
};

use sallyport_contract::{PluginName, Secret, text};

use super::{AccountError, ConnectionDesk};
use crate::clock::now_ms;

/// Longest wait for a user to sign in. After it, most services have forgotten the sign-in too.
pub const LOGIN_TIME_MAX: Duration = Duration::from_secs(600);

/// Most characters of a service's own words.
const REASON_CHARS_MAX: usize = 200;

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
    fn show_page(&self, service: &AccountService, address: &str);

    /// Reports that the account is connected.
    fn show_connected(&self, service: &AccountService, connected: &Connected);
}

impl PendingBrowserLogin {
    /// Begins a sign-in.
    ///
    /// # Errors
    ///
    /// The plugin needs no account, or its port is taken.
    pub async fn begin(service: &AccountService) -> Result<Self, LoginError> {
        check_is_needed(service)?;
        let own_address = service.auth.redirect_uri.as_deref();
        let listener = CallbackListener::open(service.plugin.as_str(), own_address).await?;
        Self::on_listener(listener, service)
    }

    /// Begins a sign-in that returns to this listener.
    pub(crate) fn on_listener(
        listener: CallbackListener,
        service: &AccountService,
    ) -> Result<Self, LoginError> {
        let login =
            BrowserLogin::begin(&service.auth, listener.redirect()).map_err(AccountError::from)?;
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
        service: &AccountService,
        user: &str,
        time_max: Duration,
    ) -> Result<Connected, LoginError> {
        check_is_needed(service)?;
        let code = self.listener.wait_for_code(&self.login, time_max).await?;
        let http = desk.http(service).map_err(AccountError::from)?;
        let tokens = self.login.finish(&service.auth, http, &code, now_ms()).await;
        keep_account(desk, service, user, tokens).await
    }
}

/// A sign-in whose answer comes to a server of the program.
pub struct PendingServerLogin {
    service: Arc<AccountService>,
    login: BrowserLogin,
}

/// What a browser brings back from a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInAnswer {
    /// The code for tokens.
    Code(String),
    /// The service or the user refused, in its own words.
    Refused(String),
}

impl PendingServerLogin {
    /// Begins a sign-in that returns to the address `redirect`.
    ///
    /// # Errors
    ///
    /// The plugin needs no account, or its definition has no address for a sign-in.
    pub fn begin(service: &Arc<AccountService>, redirect: &str) -> Result<Self, LoginError> {
        check_is_needed(service)?;
        let login = BrowserLogin::begin(&service.auth, redirect).map_err(AccountError::from)?;
        Ok(Self { service: Arc::clone(service), login })
    }

    /// The plugin.
    pub fn plugin(&self) -> &PluginName {
        &self.service.plugin
    }

    /// The address that the user has to open.
    pub fn address(&self) -> &str {
        self.login.url.as_str()
    }

    /// What the answer has to name. It is secret until then.
    pub fn state(&self) -> &Secret {
        self.login.state()
    }

    /// Connects the account of a user. The caller has found the sign-in by its state.
    ///
    /// # Errors
    ///
    /// The answer is from another issuer, the user or the service refuses, or the account cannot be
    /// kept.
    pub async fn finish(
        self,
        desk: &Arc<ConnectionDesk>,
        user: &str,
        issuer: Option<&str>,
        answer: SignInAnswer,
    ) -> Result<Connected, LoginError> {
        if !self.login.accepts_issuer(issuer) {
            let reason = "the answer is not from the service that was asked".to_owned();
            return Err(CallbackError::Refused(reason).into());
        }
        let code = match answer {
            SignInAnswer::Code(code) => code,
            SignInAnswer::Refused(words) => {
                let words = text::escape_excerpt(&words, REASON_CHARS_MAX);
                return Err(CallbackError::Refused(words).into());
            }
        };
        let service = &self.service;
        let http = desk.http(service).map_err(AccountError::from)?;
        let tokens = self.login.finish(&service.auth, http, &code, now_ms()).await;
        keep_account(desk, service, user, tokens).await
    }
}

/// Begins a sign-in on another device.
///
/// # Errors
///
/// The plugin needs no account, or the service has no such sign-in.
pub async fn begin_device_login(
    desk: &Arc<ConnectionDesk>,
    service: &AccountService,
) -> Result<DeviceLogin, LoginError> {
    check_is_needed(service)?;
    let http = desk.http(service).map_err(AccountError::from)?;
    Ok(DeviceLogin::begin(&service.auth, http).await.map_err(AccountError::from)?)
}

/// Waits for the user on the other device, and connects the account.
///
/// # Errors
///
/// The user or the service refuses, nobody signs in, or the account cannot be kept.
pub async fn finish_device_login(
    login: DeviceLogin,
    desk: &Arc<ConnectionDesk>,
    service: &AccountService,
    user: &str,
) -> Result<Connected, LoginError> {
    check_is_needed(service)?;
    let http = desk.http(service).map_err(AccountError::from)?;
    let tokens = login.finish(&service.auth, http, LOGIN_TIME_MAX, now_ms).await;
    keep_account(desk, service, user, tokens).await
}

fn check_is_needed(service: &AccountService) -> Result<(), LoginError> {
    let not_needed = || LoginError::NotNeeded(service.plugin.to_string());
    service.needs_connection().then_some(()).ok_or_else(not_needed)
}

async fn keep_account(
    desk: &Arc<ConnectionDesk>,
    service: &AccountService,
    user: &str,
    tokens: Result<TokenSet, OAuthError>,
) -> Result<Connected, LoginError> {
    let tokens = tokens.map_err(AccountError::from)?;
    let (auth, http) = (&service.auth, desk.http(service).map_err(AccountError::from)?);
    let profile = oauth::fetch_profile(auth, http, &tokens.access_token).await;
    desk.save(service, user, &tokens, profile.unwrap_or_else(|| "{}".to_owned())).await?;
    let missing = tokens.missing_scopes(&auth.required_scopes);
    Ok(Connected {
        missing_scopes: missing.into_iter().map(str::to_owned).collect(),
        has_refresh_token: tokens.refresh_token.is_some(),
    })
}
