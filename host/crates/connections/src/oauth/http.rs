//! Requests to the token endpoint of a service.
//!
//! They go to the addresses of the definition, follow no redirect and use no proxy of the
//! environment. A name must not lead to an address of this machine or of a private network unless the
//! definition names this machine itself, because a service could otherwise make the host ask others.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::{Client, Response};
use sallyport_contract::Secret;
use sallyport_http_client::{
    AddressCheck, client_builder, failure_reason, read_body, refused_address,
};
use sallyport_policy::{is_public_address, literal_addresses};
use serde_json::Value;
use url::Url;

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
        let builder = client_builder(https).map_err(|error| failed(&error))?;
        let builder = builder.timeout(ANSWER_TIME_MAX);
        let client = builder.dns_resolver(Arc::new(AddressCheck::new(may_reach_service))).build();
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
            Some(secret) if !auth.has_secret_in_form => {
                // RFC 6749 encodes both before they are joined.
                let encode = |text: &str| {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                request.basic_auth(encode(&auth.client_id), Some(encode(secret.expose())))
            }
            Some(_) | None => request,
        };
        let form_type = "application/x-www-form-urlencoded";
        let request = request.header("content-type", form_type).body(form_body(auth, form));
        let response = request.send().await.map_err(|error| connection_error(&error))?;
        read_answer(response).await
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
        let body = read_answer(response).await?;
        let not_json = || ServiceHttpError::Failed("its answer is not understood".to_owned());
        let value = serde_json::from_slice(&body).ok().filter(|_| is_success);
        value.ok_or_else(not_json)
    }
}

/// The form as a body. An application without a password in a header names itself in it.
fn form_body(auth: &AuthConfig, form: &[(&str, &str)]) -> String {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let names_itself = form.iter().any(|(name, _)| *name == "client_id");
    let secret = auth.client_secret.as_ref();
    if (secret.is_none() || auth.has_secret_in_form) && !names_itself {
        body.append_pair("client_id", &auth.client_id);
    }
    if let Some(secret) = secret.filter(|_| auth.has_secret_in_form) {
        body.append_pair("client_secret", secret.expose());
    }
    body.finish()
}

async fn read_answer(response: Response) -> Result<Vec<u8>, ServiceHttpError> {
    let body = read_body(response, ANSWER_BYTES_MAX).await;
    body.map_err(|error| connection_error(&error))?.ok_or(ServiceHttpError::TooLong)
}

/// The reason without the address, whose query could be private.
fn connection_error(error: &reqwest::Error) -> ServiceHttpError {
    if let Some(refused) = refused_address(error) {
        return ServiceHttpError::NotPublic(refused.0.clone());
    }
    ServiceHttpError::Failed(failure_reason(error).to_owned())
}

/// Checks a host that is an address. This machine is allowed, since the definition names it.
fn check_literal_address(url: &Url) -> Result<(), ServiceHttpError> {
    let is_allowed = |address: &IpAddr| is_public_address(*address) || address.is_loopback();
    match literal_addresses(url).into_iter().find(|address| !is_allowed(address)) {
        Some(address) => Err(ServiceHttpError::NotPublic(address.to_string())),
        None => Ok(()),
    }
}

/// Whether the name of a service may lead to an address: a public one, and "localhost" to this machine.
pub fn may_reach_service(name: &str, address: IpAddr) -> bool {
    match name == "localhost" {
        true => address.is_loopback(),
        false => is_public_address(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of a public server may lead to the machine's own network.
    #[test]
    fn a_name_leads_to_public_addresses_alone() {
        for (name, address, want) in [
            ("auth.example", "93.184.215.14", true),
            ("auth.example", "127.0.0.1", false),
            ("auth.example", "10.0.0.1", false),
            ("auth.example", "169.254.169.254", false),
            ("auth.example", "::1", false),
            ("auth.example", "fd00::1", false),
            ("auth.example", "::ffff:192.168.0.1", false),
            ("localhost", "127.0.0.1", true),
            ("localhost", "::1", true),
            ("localhost", "10.0.0.1", false),
            ("localhost.example", "127.0.0.1", false),
        ] {
            assert_eq!(may_reach_service(name, address.parse().unwrap()), want, "{name} {address}");
        }
    }
}
