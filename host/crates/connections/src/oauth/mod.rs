//! Signing in at a service: OAuth 2.0, with state and PKCE, in a browser or on another device.
//!
//! Services differ from the standard: lifetimes are missing or text, errors have the status of a
//! success, scopes have commas, and HTML comes in place of an answer. An error tells a refusal, which
//! ends a connection, from a failure, which does not.

mod callback;
mod http;
mod response;
#[cfg(test)]
mod tests;
mod tokens;

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};
use sallyport_contract::{Secret, text};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use url::Url;

pub use callback::{CallbackError, CallbackListener};
pub use http::{ServiceHttp, ServiceHttpError, may_reach_service};
pub use tokens::TokenSet;

use crate::{AuthConfig, AuthType};
use response::{DeviceDetails, ServiceRefusal, ServiceTokens};

/// Bytes of a state and of a verifier: more than anyone can guess.
const RANDOM_BYTES: usize = 32;

/// Most characters of a service's own words in an error.
const REASON_CHARS_MAX: usize = 300;

/// The wait between two questions about a sign-in on another device, unless the service says.
const DEVICE_INTERVAL: Duration = Duration::from_secs(5);

/// How much longer that wait gets when the service wants it.
const DEVICE_SLOW_DOWN: Duration = Duration::from_secs(5);

/// The grant type of a sign-in on another device.
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Codes of a service that refuses the account.
const REFUSALS: [&str; 5] = [
    "invalid_grant",
    "access_denied",
    "bad_refresh_token",
    "bad_verification_code",
    "interaction_required",
];

/// Codes of a service that may answer later.
const TEMPORARY: [&str; 3] = ["temporarily_unavailable", "server_error", "slow_down"];

/// Why a sign-in or a refresh has no tokens. No text contains a token or a code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    /// The service refuses the account: its permission was taken away, or has ended.
    #[error("the service refuses the account: {0}")]
    Refused(String),
    /// The service refuses the application: its name, its password or its request.
    #[error("the service refuses this application: {0}")]
    Application(String),
    /// The service cannot be reached, or its answer is not understood. It may work later.
    #[error("the service gave no tokens: {0}")]
    Unavailable(String),
    /// The definition does not say what is needed.
    #[error("{0}")]
    Definition(String),
}

/// A sign-in in a browser that has begun.
#[derive(Debug)]
pub struct BrowserLogin {
    /// The address to open.
    pub url: Url,
    state: Secret,
    verifier: Secret,
    redirect: String,
    issuer: Option<String>,
    requires_issuer: bool,
}

/// A sign-in on another device that has begun.
pub struct DeviceLogin {
    details: DeviceDetails,
}

impl BrowserLogin {
    /// Begins a sign-in that returns to `redirect`.
    ///
    /// # Errors
    ///
    /// The definition has no address for it, or the system gives no random numbers.
    pub fn begin(auth: &AuthConfig, redirect: &str) -> Result<Self, OAuthError> {
        let mut url = auth.auth_url.clone().ok_or_else(|| missing("auth_url"))?;
        let (state, verifier) = (random_text()?, random_text()?);
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(verifier.expose()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &auth.client_id)
            .append_pair("redirect_uri", redirect)
            .append_pair("state", state.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !auth.required_scopes.is_empty() {
            query.append_pair("scope", &auth.required_scopes.join(" "));
        }
        if let Some(resource) = &auth.resource {
            query.append_pair("resource", resource);
        }
        if auth.auth_type == AuthType::Google {
            // Without both, Google gives a refresh token at the first sign-in only.
            query.append_pair("access_type", "offline").append_pair("prompt", "consent");
        }
        drop(query);
        Ok(Self {
            url,
            state,
            verifier,
            redirect: redirect.to_owned(),
            issuer: auth.issuer.clone(),
            requires_issuer: auth.requires_issuer,
        })
    }

    /// What an answer to this sign-in has to name.
    pub fn state(&self) -> &Secret {
        &self.state
    }

    /// Whether an answer belongs to this sign-in.
    pub fn has_state(&self, state: &str) -> bool {
        // Compared through a hash, so that the time tells nothing of where they differ.
        blake3::hash(self.state.expose().as_bytes()) == blake3::hash(state.as_bytes())
    }

    /// Whether an answer may come from this issuer. A service that is known by its issuer must not
    /// be confused with another one that the browser was sent to (RFC 9207). An answer without an
    /// issuer is refused if the service promises one, because an attacker could leave it out.
    pub fn accepts_issuer(&self, issuer: Option<&str>) -> bool {
        match (&self.issuer, issuer) {
            (Some(expected), Some(issuer)) => expected == issuer,
            (None, Some(_)) => true,
            (_, None) => !self.requires_issuer,
        }
    }

    /// Turns the code of the answer into tokens.
    ///
    /// # Errors
    ///
    /// The service refuses the code, or gives no tokens.
    pub async fn finish(
        self,
        auth: &AuthConfig,
        http: &ServiceHttp,
        code: &str,
        now_ms: u64,
    ) -> Result<TokenSet, OAuthError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", self.verifier.expose()),
        ];
        let tokens = request_tokens(auth, http, auth.token_url.as_ref(), &form).await?;
        Ok(TokenSet::from_answer(tokens, &auth.required_scopes, None, now_ms))
    }
}

impl DeviceLogin {
    /// Begins a sign-in on another device.
    ///
    /// # Errors
    ///
    /// The service has no such sign-in, or refuses it.
    pub async fn begin(auth: &AuthConfig, http: &ServiceHttp) -> Result<Self, OAuthError> {
        let url = auth.device_url.as_ref().ok_or_else(|| {
            let message = "this service has no sign-in without a browser: its definition has no \
                           \"device_url\"";
            OAuthError::Definition(message.to_owned())
        })?;
        let scope = auth.required_scopes.join(" ");
        let form = [("client_id", auth.client_id.as_str()), ("scope", &scope)];
        let answer = http.post_form(url, auth, &form).await.map_err(|error| unavailable(&error))?;
        Ok(Self { details: read_answer(&answer)? })
    }

    /// The address to open on another device.
    pub fn address(&self) -> &str {
        &self.details.verification_uri
    }

    /// The code to type there.
    pub fn user_code(&self) -> &str {
        &self.details.user_code
    }

    /// Waits until the user has signed in, for `time_max` at most.
    ///
    /// # Errors
    ///
    /// The user or the service refuses, or the time is over.
    pub async fn finish(
        self,
        auth: &AuthConfig,
        http: &ServiceHttp,
        time_max: Duration,
        now_ms: impl Fn() -> u64,
    ) -> Result<TokenSet, OAuthError> {
        let lifetime = self.details.expires_in.map_or(time_max, Duration::from_secs).min(time_max);
        let deadline = Instant::now() + lifetime;
        let interval = self.details.interval.map_or(DEVICE_INTERVAL, Duration::from_secs);
        let mut interval = interval.min(time_max);
        let form = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", self.details.device_code.as_str()),
            ("client_id", auth.client_id.as_str()),
        ];
        let url = auth.token_url.as_ref().ok_or_else(|| missing("token_url"))?;
        while Instant::now() + interval < deadline {
            sleep(interval).await;
            let answer = http.post_form(url, auth, &form).await;
            // A connection that breaks does not end the wait.
            let Ok(answer) = answer else { continue };
            match serde_json::from_slice::<ServiceRefusal>(&answer) {
                Ok(refusal) if refusal.error == "authorization_pending" => {}
                Ok(refusal) if refusal.error == "slow_down" => interval += DEVICE_SLOW_DOWN,
                _ => {
                    let tokens = read_answer(&answer)?;
                    return Ok(TokenSet::from_answer(
                        tokens,
                        &auth.required_scopes,
                        None,
                        now_ms(),
                    ));
                }
            }
        }
        Err(OAuthError::Refused("nobody signed in in time".to_owned()))
    }
}

/// Exchanges a refresh token for new tokens. The scope is left out, so the service keeps it.
///
/// # Errors
///
/// The service refuses the token, or gives none.
pub async fn refresh(
    auth: &AuthConfig,
    http: &ServiceHttp,
    old: &TokenSet,
    now_ms: u64,
) -> Result<TokenSet, OAuthError> {
    let token = old
        .refresh_token
        .as_ref()
        .ok_or_else(|| OAuthError::Refused("there is no refresh token".to_owned()))?;
    let form = [("grant_type", "refresh_token"), ("refresh_token", token.expose())];
    let tokens = request_tokens(auth, http, auth.refresh_address(), &form).await?;
    let scopes: Vec<String> = old.scope.split_whitespace().map(str::to_owned).collect();
    Ok(TokenSet::from_answer(tokens, &scopes, Some(token), now_ms))
}

/// The profile of the user, as the service tells it; `None` if it does not.
pub async fn fetch_profile(
    auth: &AuthConfig,
    http: &ServiceHttp,
    token: &Secret,
) -> Option<String> {
    let profile_url = auth.profile_url.as_ref()?;
    let profile = http.get_json(profile_url, token).await.ok()?;
    Some(profile.to_string())
}

async fn request_tokens(
    auth: &AuthConfig,
    http: &ServiceHttp,
    url: Option<&Url>,
    form: &[(&str, &str)],
) -> Result<ServiceTokens, OAuthError> {
    let url = url.ok_or_else(|| missing("token_url"))?;
    let resource = auth.resource.as_deref().map(|resource| ("resource", resource));
    let form: Vec<(&str, &str)> = form.iter().copied().chain(resource).collect();
    let answer = http.post_form(url, auth, &form).await.map_err(|error| unavailable(&error))?;
    read_answer(&answer)
}

/// Reads an answer, regardless of its status: some services report an error with that of a success.
fn read_answer<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, OAuthError> {
    if let Ok(found) = serde_json::from_slice(answer) {
        return Ok(found);
    }
    match serde_json::from_slice::<ServiceRefusal>(answer) {
        Ok(refusal) => Err(refusal.into_error()),
        Err(_) => Err(OAuthError::Unavailable("its answer is not understood".to_owned())),
    }
}

impl ServiceRefusal {
    fn into_error(self) -> OAuthError {
        let words = self.error_description.unwrap_or_default();
        let reason = match words.is_empty() {
            true => self.error.clone(),
            false => format!("{}: {words}", self.error),
        };
        let reason = text::escape_excerpt(&reason, REASON_CHARS_MAX);
        match self.error.as_str() {
            code if REFUSALS.contains(&code) => OAuthError::Refused(reason),
            code if TEMPORARY.contains(&code) => OAuthError::Unavailable(reason),
            _ => OAuthError::Application(reason),
        }
    }
}

fn missing(key: &str) -> OAuthError {
    OAuthError::Definition(format!("the definition has no \"{key}\""))
}

fn unavailable(error: &ServiceHttpError) -> OAuthError {
    OAuthError::Unavailable(error.to_string())
}

/// A text that nobody can guess, of signs that an address takes as they are.
fn random_text() -> Result<Secret, OAuthError> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| OAuthError::Unavailable("the system gives no random numbers".to_owned()))?;
    Ok(Secret::new(BASE64URL_NOPAD.encode(&bytes)))
}
