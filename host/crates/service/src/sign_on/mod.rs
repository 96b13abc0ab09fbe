//! Logging in at an identity server, with OpenID Connect: an authorization code with PKCE, a state
//! and a nonce.
//!
//! - [`SignOn`]: begins a log-in, and finishes it when the browser returns. Start reading here.
//! - [`SignOnSettings`]: the checked `[login]` table.
//! - `pending`: the log-ins that have begun.
//! - `provider`: the identity server's description and keys.
//! - `http`: the requests to it.
//! - `id_token`: the check of what it says about the user.
//! - `claims`: who the user is, and what they may do.
//! - `refusal`: why a log-in fails.
//!
//! The tokens of the identity server are used once, to learn who the user is, and kept nowhere. The
//! log-in that follows is the service's own.

mod claims;
mod http;
mod id_token;
mod pending;
mod provider;
mod refusal;
mod settings;

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use openidconnect::{
    AccessToken, AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, Scope, TokenResponse,
    core::{CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken},
};
use sallyport_contract::{Secret, text};
use serde_json::{Map, Value};
use url::Url;

use crate::{pending_return::BrowserIds, role::ServiceUser};

pub(crate) use pending::PendingSignOn;
pub(crate) use refusal::SignOnRefusal;
pub use settings::{SignOnSettings, SignOnSettingsError};

use http::IdentityHttpError;
use id_token::TokenProblem;
use pending::PendingSignOns;
use provider::{Provider, ProviderCache};

/// The claims of a user, as the identity server signed or sent them.
type Claims = Map<String, Value>;

/// Most users who are known to have logged in since the start.
const USERS_MAX: usize = 10_000;

/// Most characters of the identity server's own words.
const REASON_CHARS_MAX: usize = 200;

/// Logs users in at an identity server.
#[derive(Debug)]
pub struct SignOn {
    settings: SignOnSettings,
    provider: ProviderCache,
    pending: PendingSignOns,
    /// The names of those who have logged in since the start. Their questions may outlive their
    /// log-in.
    users: Mutex<BTreeSet<String>>,
}

/// What begins a log-in.
#[derive(Debug)]
pub(crate) struct SignOnStart {
    /// Where the identity server sends the browser back to.
    pub(crate) redirect: Url,
    /// Whether the browser speaks TLS.
    pub(crate) is_over_tls: bool,
    pub(crate) address: IpAddr,
}

/// A log-in that has begun.
#[derive(Debug)]
pub(crate) struct BegunSignOn {
    /// The page of the identity server.
    pub(crate) url: Url,
    /// What the browser keeps, to show that it began the log-in.
    pub(crate) browser_id: Secret,
}

/// What the browser brings back.
#[derive(Debug, Default)]
pub(crate) struct SignOnAnswer {
    pub(crate) state: String,
    pub(crate) issuer: Option<String>,
    pub(crate) outcome: SignOnOutcome,
}

/// What the identity server decided.
#[derive(Debug, Default)]
pub(crate) enum SignOnOutcome {
    /// The answer has neither a code nor an error.
    #[default]
    Nothing,
    Code(String),
    /// Its word for the error, and its description.
    Refused(String, Option<String>),
}

/// A user who has logged in.
#[derive(Debug)]
pub(crate) struct SignedOnUser {
    pub(crate) user: ServiceUser,
    /// The names of their groups at the identity server.
    pub(crate) groups: Vec<String>,
    /// When the log-in ends, in milliseconds since 1970.
    pub(crate) ends_ms: u64,
}

/// The client of the library, for a provider whose description is known.
type IdentityClient = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

impl SignOn {
    /// Prepares log-ins. The identity server is asked when the first one begins.
    ///
    /// # Errors
    ///
    /// The system's certificates cannot be read.
    pub fn new(settings: SignOnSettings) -> Result<Self, SignOnSettingsError> {
        let provider = ProviderCache::new(&settings.issuer)?;
        Ok(Self { settings, provider, pending: PendingSignOns::default(), users: Mutex::default() })
    }

    /// The host of the identity server.
    pub(crate) fn server_name(&self) -> &str {
        self.settings.issuer_url().host_str().unwrap_or_default()
    }

    /// The names of those who have logged in since the start.
    pub(crate) fn users(&self) -> BTreeSet<String> {
        self.known_users().clone()
    }

    /// Begins a log-in.
    pub(crate) async fn begin(
        &self,
        start: SignOnStart,
        now_ms: u64,
    ) -> Result<BegunSignOn, SignOnRefusal> {
        let provider = self.provider.current().await?;
        let redirect = RedirectUrl::from_url(start.redirect);
        let client = self.client(&provider).set_redirect_uri(redirect.clone());
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        let scopes = self.settings.scopes.iter().cloned().map(Scope::new);
        let (url, state, nonce) = request.add_scopes(scopes).set_pkce_challenge(challenge).url();
        let pending = PendingSignOn {
            nonce,
            verifier,
            redirect,
            is_over_tls: start.is_over_tls,
            begun_ms: now_ms,
        };
        let browser_id = self.pending.add(state.secret(), start.address, pending);
        Ok(BegunSignOn { url, browser_id: browser_id.map_err(|_| SignOnRefusal::NoRandom)? })
    }

    /// Takes the log-in that a browser returns from, once.
    pub(crate) fn take_pending(
        &self,
        answer: &SignOnAnswer,
        browser: BrowserIds<'_>,
        now_ms: u64,
    ) -> Result<PendingSignOn, SignOnRefusal> {
        self.pending.take(&answer.state, browser, now_ms)
    }

    /// Finishes a log-in.
    pub(crate) async fn finish(
        &self,
        pending: PendingSignOn,
        answer: SignOnAnswer,
        now_ms: u64,
    ) -> Result<SignedOnUser, SignOnRefusal> {
        let provider = self.provider.current().await?;
        provider.check_issuer(answer.issuer.as_deref())?;
        let code = match answer.outcome {
            SignOnOutcome::Code(code) => code,
            SignOnOutcome::Refused(word, words) => {
                return Err(SignOnRefusal::ByServer(reason(&word, words.as_deref())));
            }
            SignOnOutcome::Nothing => return Err(SignOnRefusal::NoAnswer),
        };
        let PendingSignOn { nonce, verifier, redirect, begun_ms, .. } = pending;
        let (token, access) = self.exchange(&provider, code, verifier, redirect).await?;
        let claims = self.check_token(&provider, &token, &access, &nonce, begun_ms).await?;
        let claims = self.complete_claims(&provider, claims, &access).await?;
        let user = claims::find_user(&claims, &self.settings)?;
        self.remember(&user)?;
        let time_ms = u64::try_from(self.settings.time.as_millis()).unwrap_or(u64::MAX);
        let groups = claims::group_names(&claims, &self.settings);
        Ok(SignedOnUser { user, groups, ends_ms: now_ms.saturating_add(time_ms) })
    }

    fn client(&self, provider: &Provider) -> IdentityClient {
        let secret = self.settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.expose().to_owned()));
        let metadata = provider.metadata.clone();
        let id = ClientId::new(self.settings.client_id.clone());
        let client = CoreClient::from_provider_metadata(metadata, id, secret);
        let methods = provider.metadata.token_endpoint_auth_methods_supported();
        let has = |method| methods.is_some_and(|methods| methods.contains(&method));
        // Without a list, the header is what every server has to take.
        let is_form = has(CoreClientAuthMethod::ClientSecretPost)
            && !has(CoreClientAuthMethod::ClientSecretBasic);
        client.set_auth_type(if is_form { AuthType::RequestBody } else { AuthType::BasicAuth })
    }

    /// Turns the code into tokens.
    async fn exchange(
        &self,
        provider: &Provider,
        code: String,
        verifier: PkceCodeVerifier,
        redirect: RedirectUrl,
    ) -> Result<(CoreIdToken, AccessToken), SignOnRefusal> {
        let client = self.client(provider).set_redirect_uri(redirect);
        let request = client.exchange_code(AuthorizationCode::new(code)).map_err(|_| {
            SignOnRefusal::Unavailable("its description has no token endpoint".to_owned())
        })?;
        let sent = request.set_pkce_verifier(verifier).request_async(self.provider.http()).await;
        let tokens = sent.map_err(|error| match error {
            RequestTokenError::ServerResponse(refusal) => {
                let words = refusal.error_description().map(String::as_str);
                SignOnRefusal::ByServer(reason(refusal.error().as_ref(), words))
            }
            RequestTokenError::Request(error) => error.into(),
            _ => SignOnRefusal::Unavailable("it answered something other than tokens".to_owned()),
        })?;
        let token = tokens.id_token().cloned().ok_or(SignOnRefusal::BadToken("there is none"))?;
        Ok((token, tokens.access_token().clone()))
    }

    /// Checks the ID token. If its key is unknown, the keys are read again, because identity servers
    /// change them.
    async fn check_token(
        &self,
        provider: &Provider,
        token: &CoreIdToken,
        access: &AccessToken,
        nonce: &Nonce,
        begun_ms: u64,
    ) -> Result<Claims, SignOnRefusal> {
        let client_id = &self.settings.client_id;
        let check = |provider: &Provider| {
            id_token::check(provider, client_id, token, access, nonce, begun_ms)
        };
        match check(provider) {
            Err(TokenProblem::UnknownKey) => {
                let newer = self.provider.with_new_keys(provider).await?;
                check(&newer).map_err(Into::into)
            }
            checked => checked.map_err(Into::into),
        }
    }

    /// Adds what the identity server only tells those who ask, because many put little into tokens.
    async fn complete_claims(
        &self,
        provider: &Provider,
        claims: Claims,
        access: &AccessToken,
    ) -> Result<Claims, SignOnRefusal> {
        if claims::is_complete(&claims, &self.settings) {
            return Ok(claims);
        }
        let Some(url) = provider.metadata.userinfo_endpoint() else { return Ok(claims) };
        let more = self.provider.http().user_info(url.url(), access.secret()).await?;
        if more.get("sub") != claims.get("sub") {
            return Err(SignOnRefusal::BadToken("the user's details are of another user"));
        }
        // What is signed counts more.
        Ok(more.into_iter().chain(claims).collect())
    }

    fn remember(&self, user: &ServiceUser) -> Result<(), SignOnRefusal> {
        let mut users = self.known_users();
        if users.len() >= USERS_MAX && !users.contains(&user.name) {
            return Err(SignOnRefusal::TooManyUsers);
        }
        users.insert(user.name.clone());
        Ok(())
    }

    fn known_users(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identity server's reason, in its own words, as text that is safe to show.
fn reason(word: &str, words: Option<&str>) -> String {
    let whole = match words.filter(|words| !words.is_empty()) {
        Some(words) => format!("{word}: {words}"),
        None => word.to_owned(),
    };
    text::escape_excerpt(&whole, REASON_CHARS_MAX)
}

impl From<IdentityHttpError> for SignOnRefusal {
    fn from(error: IdentityHttpError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<TokenProblem> for SignOnRefusal {
    fn from(problem: TokenProblem) -> Self {
        match problem {
            TokenProblem::UnknownKey => Self::BadToken("no key of the server signed it"),
            TokenProblem::Refused(why) => Self::BadToken(why),
        }
    }
}
