//! Requests to the token endpoint of a service.
//!
//! They go to the addresses of the definition, follow no redirect and use no proxy of the
//! environment. A name must not lead to an address of this machine or of a private network unless the
//! definition names this machine itself, because a service could otherwise make the host ask others.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use reqwest::{
    Client, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_platform_verifier::BuilderVerifierExt;
use sallyport_contract::Secret;
use sallyport_policy::is_public_address;
use serde_json::Value;
use url::{Host, Url};

use crate::AuthConfig;

/// Longest wait for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest answer in bytes. Tokens with claims have some kilobytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Why there is no answer. The message has no part of the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceHttpError {
    /// The server cannot be reached, or breaks off.
    #[error("{0}")]
    Failed(String),
    /// The answer is too long.
    #[error("its answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The address is not public.
    #[error("{0} is not a public address")]
    NotPublic(String),
}

/// Sends the requests of sign-ins.
#[derive(Debug, Clone)]
pub struct ServiceHttp {
    client: Client,
}

impl ServiceHttp {
    /// Creates a client. Without `https`, it trusts no certificate, which takes no time.
    ///
    /// # Errors
    ///
    /// The system's certificates cannot be read.
    pub fn new(https: bool) -> Result<Self, ServiceHttpError> {
        let failed = |error: &dyn std::fmt::Display| ServiceHttpError::Failed(error.to_string());
        let tls = tls_config(https).map_err(|error| failed(&error))?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(ANSWER_TIME_MAX)
            .dns_resolver(Arc::new(PublicResolver))
            .user_agent(concat!("sallyport/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { client: client.map_err(|error| failed(&error))? })
    }

    /// Sends a form to an endpoint of the sign-in, as the application. Returns the answer regardless
    /// of its status.
    pub(super) async fn post_form(
        &self,
        url: &Url,
        auth: &AuthConfig,
        form: &[(&str, &str)],
    ) -> Result<Vec<u8>, ServiceHttpError> {
        check_literal_address(url)?;
        let request = self.client.post(url.clone()).header("accept", "application/json");
        let request = match &auth.client_secret {
            Some(secret) => {
                // RFC 6749 encodes both before they are joined.
                let encode = |text: &str| {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                request.basic_auth(encode(&auth.client_id), Some(encode(secret.expose())))
            }
            None => request,
        };
        let form_type = "application/x-www-form-urlencoded";
        let request = request.header("content-type", form_type).body(form_body(auth, form));
        let response = request.send().await.map_err(|error| connection_error(&error))?;
        read_body(response).await
    }

    /// Fetches JSON with a token.
    pub(super) async fn get_json(
        &self,
        url: &Url,
        token: &Secret,
    ) -> Result<Value, ServiceHttpError> {
        check_literal_address(url)?;
        let sent = self.client.get(url.clone()).bearer_auth(token.expose()).send().await;
        let response = sent.map_err(|error| connection_error(&error))?;
        let is_success = response.status().is_success();
        let body = read_body(response).await?;
        let not_json = || ServiceHttpError::Failed("its answer is not understood".to_owned());
        let value = serde_json::from_slice(&body).ok().filter(|_| is_success);
        value.ok_or_else(not_json)
    }
}

/// The form as a body. An application without a password names itself in it.
fn form_body(auth: &AuthConfig, form: &[(&str, &str)]) -> String {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let names_itself = form.iter().any(|(name, _)| *name == "client_id");
    if auth.client_secret.is_none() && !names_itself {
        body.append_pair("client_id", &auth.client_id);
    }
    body.finish()
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, ServiceHttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| connection_error(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(ServiceHttpError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The reason without the address, whose query could be private.
fn connection_error(error: &reqwest::Error) -> ServiceHttpError {
    ServiceHttpError::Failed(if error.is_timeout() {
        "it did not answer in time".to_owned()
    } else if error.is_connect() {
        "it cannot be reached".to_owned()
    } else {
        "the connection broke".to_owned()
    })
}

/// Checks a host that is an address. This machine is allowed, since the definition names it.
fn check_literal_address(url: &Url) -> Result<(), ServiceHttpError> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    let is_allowed = is_public_address(address) || std::net::IpAddr::is_loopback(&address);
    is_allowed.then_some(()).ok_or_else(|| ServiceHttpError::NotPublic(address.to_string()))
}

/// Resolves names to public addresses only; "localhost" is this machine.
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let is_local = name.as_str() == "localhost";
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let fits = |address: &SocketAddr| match is_local {
                true => address.ip().is_loopback(),
                false => is_public_address(address.ip()),
            };
            let addresses: Vec<SocketAddr> = found.filter(fits).collect();
            match addresses.is_empty() {
                true => Err(ServiceHttpError::NotPublic(name.as_str().to_owned()).into()),
                false => Ok(Box::new(addresses.into_iter()) as Addrs),
            }
        })
    }
}

fn tls_config(https: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(match https {
        true => builder.with_platform_verifier()?.with_no_client_auth(),
        false => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    })
}
