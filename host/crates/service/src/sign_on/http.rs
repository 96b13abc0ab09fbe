//! Requests to the identity server.
//!
//! They follow no redirect, use no proxy of the environment, and are bounded in time and length. The
//! operator names the issuer, so its host may have any address. Other hosts are named by the
//! server's own description: they must be public, because the server could otherwise make the
//! service ask machines that only the service reaches.

use std::{future::Future, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::Client;
use sallyport_contract::json::parse_json;
use sallyport_http_client::{
    AddressCheck, client_builder, failure_reason, read_body, refused_address,
};
use sallyport_policy::{is_public_address, is_this_machine, literal_addresses};
use serde_json::Value;
use url::Url;

use super::{Claims, settings::SignOnSettingsError};

/// Longest wait for an answer. The user waits in front of the browser.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest answer in bytes: many keys, or a user with many groups.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Sends the requests of log-ins.
#[derive(Debug, Clone)]
pub(super) struct IdentityHttp {
    client: Client,
    issuer: Url,
}

/// Why there is no answer. No text has a part of the request except its host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IdentityHttpError {
    /// The address is without TLS.
    #[error("{0} is an address without TLS")]
    NotEncrypted(String),
    /// The address is neither the issuer's nor public.
    #[error("{0} is not a public address")]
    NotPublic(String),
    /// The answer is too long.
    #[error("its answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The server answered with an error, or with another thing than it should.
    #[error("it answered {0} to the question for the user's details")]
    NoDetails(u16),
    /// The server cannot be reached, or breaks off.
    #[error("{0}")]
    Failed(&'static str),
}

impl IdentityHttp {
    /// Makes a client for an issuer.
    ///
    /// # Errors
    ///
    /// The system's certificates cannot be read.
    pub(super) fn new(issuer: &Url) -> Result<Self, SignOnSettingsError> {
        let failed = |error: &dyn std::fmt::Display| SignOnSettingsError::Tls(error.to_string());
        let builder = client_builder(issuer.scheme() == "https").map_err(|error| failed(&error))?;
        let judged_by = issuer.clone();
        let check = AddressCheck::new(move |name, address| may_reach(&judged_by, name, address));
        let client = builder.timeout(ANSWER_TIME_MAX).dns_resolver(Arc::new(check)).build();
        Ok(Self { client: client.map_err(|error| failed(&error))?, issuer: issuer.clone() })
    }

    /// Checks an address before anything is sent to it, or a browser is.
    pub(super) fn check_address(&self, url: &Url) -> Result<(), IdentityHttpError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_beside = is_this_machine(&self.issuer) && is_this_machine(url);
        let is_clear = url.scheme() == "http" && self.issuer.scheme() == "http" && is_beside;
        if url.scheme() != "https" && !is_clear {
            return Err(IdentityHttpError::NotEncrypted(host));
        }
        let is_allowed = |address: &IpAddr| is_public_address(*address);
        let is_own = url.host() == self.issuer.host() || is_beside;
        if !is_own && !literal_addresses(url).iter().all(is_allowed) {
            return Err(IdentityHttpError::NotPublic(host));
        }
        Ok(())
    }

    /// What the server tells about the user whose token it is.
    pub(super) async fn user_info(
        &self,
        url: &Url,
        token: &str,
    ) -> Result<Claims, IdentityHttpError> {
        let request = self.client.get(url.clone()).header("accept", "application/json");
        let request = request.bearer_auth(token).build();
        let request = request.map_err(|_| IdentityHttpError::Failed("its token cannot be sent"))?;
        let response = self.execute(request).await?;
        let no_details = || IdentityHttpError::NoDetails(response.status().as_u16());
        let text = std::str::from_utf8(response.body()).map_err(|_| no_details())?;
        match parse_json(text, ANSWER_BYTES_MAX) {
            Ok(Value::Object(claims)) if response.status().is_success() => Ok(claims),
            _ => Err(no_details()),
        }
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, IdentityHttpError> {
        let unsendable = IdentityHttpError::Failed("an address of its description is none");
        self.execute(request.try_into().map_err(|_| unsendable)?).await
    }

    async fn execute(&self, request: reqwest::Request) -> Result<HttpResponse, IdentityHttpError> {
        self.check_address(request.url())?;
        let response = self.client.execute(request).await.map_err(|error| failed(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response, ANSWER_BYTES_MAX).await.map_err(|error| failed(&error))?;
        let mut answer = HttpResponse::new(body.ok_or(IdentityHttpError::TooLong)?);
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(answer)
    }
}

impl<'c> AsyncHttpClient<'c> for IdentityHttp {
    type Error = IdentityHttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Self::Error>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

/// Whether a name may lead to an address.
fn may_reach(issuer: &Url, name: &str, address: IpAddr) -> bool {
    issuer.host_str().is_some_and(|own| own.eq_ignore_ascii_case(name))
        || is_public_address(address)
        || name == "localhost" && address.is_loopback() && is_this_machine(issuer)
}

/// The reason without the address, whose query could be private.
fn failed(error: &reqwest::Error) -> IdentityHttpError {
    if let Some(refused) = refused_address(error) {
        return IdentityHttpError::NotPublic(refused.0.clone());
    }
    IdentityHttpError::Failed(failure_reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_issuer_may_have_a_private_address_or_no_tls() {
        let own = "http://127.0.0.1:3000";
        let rows = [
            ("https://id.example", "https://id.example/token", true),
            ("https://id.example", "https://keys.example/jwks", true),
            ("https://id.example", "http://id.example/token", false),
            ("https://id.example", "http://127.0.0.1/token", false),
            ("https://id.example", "https://127.0.0.1/token", false),
            ("https://id.example", "https://localhost/token", false),
            ("https://id.example", "https://10.0.0.1/token", false),
            ("https://id.example", "https://[fd00::1]/token", false),
            ("https://id.example", "https://169.254.169.254/latest", false),
            ("https://id.example", "file:///etc/passwd", false),
            ("https://id.example", "javascript:alert(1)", false),
            ("https://10.0.0.1", "https://10.0.0.1:8443/token", true),
            ("https://10.0.0.1", "https://10.0.0.2/token", false),
            ("https://10.0.0.1", "https://127.0.0.1/token", false),
            (own, "http://127.0.0.1:3001/token", true),
            (own, "http://localhost:3001/token", true),
            (own, "https://keys.example/jwks", true),
            (own, "http://keys.example/jwks", false),
            (own, "http://10.0.0.1/jwks", false),
        ];
        for (issuer, url, is_allowed) in rows {
            let http = IdentityHttp {
                client: client_builder(false).unwrap().build().unwrap(),
                issuer: issuer.parse().unwrap(),
            };
            let checked = http.check_address(&url.parse().unwrap());
            assert_eq!(checked.is_ok(), is_allowed, "{issuer} {url}: {checked:?}");
        }
    }

    #[test]
    fn a_name_leads_to_public_addresses_except_the_issuers_own() {
        let rows = [
            ("https://id.example", "id.example", "10.0.0.1", true),
            ("https://id.example", "keys.example", "10.0.0.1", false),
            ("https://id.example", "keys.example", "93.184.215.14", true),
            ("https://id.example", "localhost", "127.0.0.1", false),
            ("http://127.0.0.1:1", "localhost", "127.0.0.1", true),
            ("http://127.0.0.1:1", "localhost", "10.0.0.1", false),
            ("http://127.0.0.1:1", "keys.example", "127.0.0.1", false),
        ];
        for (issuer, name, address, want) in rows {
            let found = may_reach(&issuer.parse().unwrap(), name, address.parse().unwrap());
            assert_eq!(found, want, "{issuer} {name} {address}");
        }
    }
}
