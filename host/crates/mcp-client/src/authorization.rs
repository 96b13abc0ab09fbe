//! How users sign in to a server at an address: which service gives the tokens, and as which
//! application.
//!
//! The server names the service, so it could name any address. The client of the caller decides which
//! ones are reached, and no redirect is followed.

use std::{sync::Arc, time::Duration};

use reqwest::Client;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientFuture,
    OAuthHttpRequest,
};
use sallyport_contract::{Secret, text};
use sallyport_http_client::read_body;
use url::Url;

use crate::{
    connection::{ConnectionLimits, ServerConnection},
    error::{SERVER_TEXT_CHARS_MAX, ServerError},
    http_messages::ServerAddress,
    journal::RedactServerText,
};

/// The name under which this program registers itself.
const APPLICATION_NAME: &str = "Sallyport";

/// Longest answer of a service, in bytes. Its description has some kilobytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Longest wait for the server to say that it requires a sign-in.
const CHALLENGE_TIME_MAX: Duration = Duration::from_secs(20);

/// The field with the ways in which a service takes an application's password.
const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";

/// The field with which a service promises that its answers name it (RFC 9207).
const NAMES_ISSUER: &str = "authorization_response_iss_parameter_supported";

/// An application that the user has registered at the service.
#[derive(Debug, Clone)]
pub struct RegisteredApplication {
    /// Its name at the service.
    pub client_id: String,
    /// Its password, if it has one.
    pub client_secret: Option<Secret>,
}

/// How users sign in to a server.
#[derive(Debug, Clone)]
pub struct ServerAuthorization {
    /// Who answers a sign-in, if the service names it.
    pub issuer: Option<String>,
    /// Whether the service names itself in each answer to a sign-in (RFC 9207).
    pub requires_issuer: bool,
    /// Where the user signs in.
    pub auth_url: Url,
    /// Where a code becomes tokens.
    pub token_url: Url,
    /// The application as which users sign in. It has no password if the service takes none.
    pub application: RegisteredApplication,
    /// Whether the service takes the password in the form alone.
    pub has_secret_in_form: bool,
    /// The permissions to ask for.
    pub scopes: Vec<String>,
    /// What the tokens are for.
    pub resource: Option<String>,
}

/// The permissions that an account has already, or that a call lacked.
#[derive(Debug, Clone, Default)]
pub struct EarlierPermissions {
    /// The service that gave them. Another one is not asked for them.
    pub issuer: Option<String>,
    /// The permissions.
    pub scopes: Vec<String>,
}

impl EarlierPermissions {
    /// Adds them to the permissions that a service is asked for.
    fn add_to(self, scopes: &mut Vec<String>, issuer: Option<&String>) {
        if issuer.is_none() || self.issuer.as_ref() != issuer {
            return;
        }
        for scope in self.scopes {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
    }
}

/// Why users cannot sign in to a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// It does not say which service gives its tokens.
    #[error("the server does not say where its users sign in")]
    NotOffered,
    /// The service does not register this program.
    #[error("the service of the server does not register this program: {0}")]
    NotRegistered(String),
    /// What the server or the service says cannot be used.
    #[error("the sign-in of the server cannot be used: {0}")]
    Unusable(String),
}

/// Decides whether the discovery may send a request to an address.
pub type MayAsk = Box<dyn Fn(&Url) -> bool + Send + Sync>;

/// Sends the requests of the discovery.
struct DiscoveryClient {
    client: Client,
    may_ask: MayAsk,
}

impl OAuthHttpClient for DiscoveryClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request.request)?;
            if !(self.may_ask)(request.url()) {
                let host = request.url().host_str().unwrap_or_default().to_owned();
                return Err(format!("{host} is not a public address").into());
            }
            let response = self.client.execute(request).await?;
            let mut answer = http::Response::builder().status(response.status());
            if let Some(headers) = answer.headers_mut() {
                headers.clone_from(response.headers());
            }
            let body = read_body(response, ANSWER_BYTES_MAX).await?;
            let too_long = || format!("its answer is longer than {ANSWER_BYTES_MAX} bytes");
            Ok(answer.body(body.ok_or_else(too_long)?)?)
        })
    }
}

/// Finds out how users sign in to the server at an address, and registers this program at the service
/// unless the user has registered an application. The service is to send the browser to `redirect`.
/// `may_ask` checks each address before a request; the client checks what names lead to. The service
/// is asked for the permissions that the server names, and for the `earlier` ones.
///
/// # Errors
///
/// The server offers no sign-in, or it cannot be used.
pub async fn discover_authorization(
    server: ServerAddress,
    may_ask: MayAsk,
    redirect: &str,
    application: Option<RegisteredApplication>,
    earlier: EarlierPermissions,
) -> Result<ServerAuthorization, AuthorizationError> {
    let challenge = sign_in_challenge(&server).await;
    let http = Arc::new(DiscoveryClient { client: server.client, may_ask });
    let manager = AuthorizationManager::new_with_oauth_http_client(server.url, http).await;
    let mut manager = manager.map_err(unusable)?;
    let resolution = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let resolution = resolution.map_err(unusable)?;
    if !resolution.source.is_discovered() {
        return Err(AuthorizationError::NotOffered);
    }
    let metadata = resolution.metadata;
    let endpoint = |text: &str| {
        let url = Url::parse(text).map_err(|_| format!("{text:?} is not an address"));
        url.map_err(|reason| AuthorizationError::Unusable(shown(&reason)))
    };
    let (auth_url, token_url) =
        (endpoint(&metadata.authorization_endpoint)?, endpoint(&metadata.token_endpoint)?);
    let issuer = metadata.issuer.clone();
    let requires_issuer = metadata.additional_fields.get(NAMES_ISSUER) == Some(&true.into());
    let taking = SecretTaking::of(metadata.additional_fields.get(AUTH_METHODS));
    manager.set_metadata(metadata);
    let mut scopes = manager.select_initial_scopes(&[]).await;
    earlier.add_to(&mut scopes, issuer.as_ref());
    let mut application = register(&mut manager, redirect, &scopes, application).await?;
    application.client_secret.take_if(|_| taking == SecretTaking::Nowhere);
    let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
    // Of the address that it makes, only the resource is used.
    let example = manager.get_authorization_url(&scope_names).await.map_err(unusable)?;
    Ok(ServerAuthorization {
        issuer,
        requires_issuer,
        auth_url,
        token_url,
        application,
        has_secret_in_form: taking == SecretTaking::Form,
        scopes,
        resource: query_value(&example, "resource"),
    })
}

/// How a service takes the password of an application.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretTaking {
    Header,
    Form,
    Nowhere,
}

impl SecretTaking {
    /// Reads the ways that a service names. The header is what a service takes that names none.
    fn of(methods: Option<&serde_json::Value>) -> Self {
        let Some(methods) = methods.and_then(|methods| methods.as_array()) else {
            return Self::Header;
        };
        let takes = |method: &str| methods.iter().any(|own| own == method);
        match (takes("client_secret_basic"), takes("client_secret_post"), takes("none")) {
            (true, _, _) | (false, false, false) => Self::Header,
            (false, true, _) => Self::Form,
            (false, false, true) => Self::Nowhere,
        }
    }
}

/// What the server answers to messages without a token, if it requires one. Many servers answer
/// nothing else, so a plain request for their address would not tell.
async fn sign_in_challenge(server: &ServerAddress) -> Option<String> {
    let limits = ConnectionLimits { start: CHALLENGE_TIME_MAX, tools: 0 };
    let listing = async {
        // No text of the server is used.
        let redact: RedactServerText = Arc::new(|_: &str| String::new());
        let connection = ServerConnection::open_address(server.clone(), limits, redact).await?;
        let listed = connection.list_tools().await;
        connection.close().await;
        listed
    };
    match listing.await {
        Err(ServerError::SignInRequired(challenge)) => Some(challenge),
        // The discovery that follows reports what else is wrong.
        Ok(_) | Err(_) => None,
    }
}

async fn register(
    manager: &mut AuthorizationManager,
    redirect: &str,
    scopes: &[String],
    application: Option<RegisteredApplication>,
) -> Result<RegisteredApplication, AuthorizationError> {
    if let Some(application) = application {
        let config = OAuthClientConfig::new(application.client_id.clone(), redirect);
        manager.configure_client(config).map_err(unusable)?;
        return Ok(application);
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let registered = manager.register_client(APPLICATION_NAME, redirect, &scopes).await;
    let registered =
        registered.map_err(|error| AuthorizationError::NotRegistered(shown(&error.to_string())))?;
    Ok(RegisteredApplication {
        client_id: registered.client_id,
        client_secret: registered.client_secret.map(Secret::new),
    })
}

fn query_value(address: &str, name: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

fn unusable(error: AuthError) -> AuthorizationError {
    match error {
        AuthError::NoAuthorizationSupport => AuthorizationError::NotOffered,
        error => AuthorizationError::Unusable(shown(&error.to_string())),
    }
}

/// A text that may come from the server, made safe to show.
fn shown(reason: &str) -> String {
    text::escape_excerpt(reason, SERVER_TEXT_CHARS_MAX)
}
