//! How users sign in to a server at an address: which service gives the tokens, and as which
//! application.
//!
//! The server names the service, so it could name any address. The client of the caller decides which
//! ones are reached, and no redirect is followed.

use std::sync::Arc;

use reqwest::Client;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientFuture,
    OAuthHttpRequest,
};
use sallyport_contract::{Secret, text};
use sallyport_http_client::read_body;
use url::Url;

use crate::{connection::SERVER_TEXT_CHARS_MAX, http_messages::ServerAddress};

/// The name under which this program registers itself.
const APPLICATION_NAME: &str = "Sallyport";

/// Longest answer of a service, in bytes. Its description has some kilobytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

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
    /// Who answers a sign-in, if the service says so.
    pub issuer: Option<String>,
    /// Whether the service names itself in each answer to a sign-in (RFC 9207).
    pub requires_issuer: bool,
    /// Where the user signs in.
    pub auth_url: Url,
    /// Where a code becomes tokens.
    pub token_url: Url,
    /// The application as which users sign in.
    pub application: RegisteredApplication,
    /// The permissions to ask for.
    pub scopes: Vec<String>,
    /// What the tokens are for.
    pub resource: Option<String>,
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
/// `may_ask` checks each address before a request; the client checks what names lead to.
///
/// # Errors
///
/// The server offers no sign-in, or it cannot be used.
pub async fn discover_authorization(
    server: ServerAddress,
    may_ask: MayAsk,
    redirect: &str,
    application: Option<RegisteredApplication>,
) -> Result<ServerAuthorization, AuthorizationError> {
    let http = Arc::new(DiscoveryClient { client: server.client, may_ask });
    let manager = AuthorizationManager::new_with_oauth_http_client(server.url, http).await;
    let mut manager = manager.map_err(unusable)?;
    let resolution = manager.resolve_metadata().await.map_err(unusable)?;
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
    manager.set_metadata(metadata);
    let scopes = manager.select_scopes(None, &[]);
    let application = register(&mut manager, redirect, &scopes, application).await?;
    let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
    // Of the address that it makes, only the resource is used.
    let example = manager.get_authorization_url(&scope_names).await.map_err(unusable)?;
    Ok(ServerAuthorization {
        issuer,
        requires_issuer,
        auth_url,
        token_url,
        application,
        scopes,
        resource: query_value(&example, "resource"),
    })
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
