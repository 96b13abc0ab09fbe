//! The way to the index: one client, bounded answers.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, Response, StatusCode, header, redirect};
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_platform_verifier::BuilderVerifierExt;
use sallyport_contract::services::PackageError;
use url::Url;

/// A server that does not take a connection by then is not there.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// Longest wait for a whole answer. A guest waits for it, and its own time runs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Indexes send a file from another host than its page; a longer chain is a loop.
const REDIRECTS_MAX: usize = 5;

/// Longest page of a project; those with thousands of files have some megabytes.
const PAGE_BYTES_MAX: usize = 32 << 20;

/// Largest wheel.
const WHEEL_BYTES_MAX: usize = 32 << 20;

/// Both forms of a page, the one that is easier to read first.
const PAGE_FORMS: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// A page of the index.
pub(crate) struct Page {
    pub(crate) url: Url,
    pub(crate) media_type: String,
    pub(crate) text: String,
}

/// Builds a client. A plain http index trusts no certificate at all, and is never led to https.
pub(crate) fn client(is_https: bool) -> Result<Client, String> {
    let tls = tls(is_https).map_err(|error| format!("cannot set up TLS: {error}"))?;
    let onwards = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS_MAX {
            attempt.error("too many redirects")
        } else if is_https && attempt.url().scheme() != "https" {
            attempt.error("a redirect leads away from https")
        } else {
            attempt.follow()
        }
    });
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(onwards)
        .connect_timeout(CONNECT_TIME_MAX)
        .timeout(ANSWER_TIME_MAX)
        .user_agent(concat!("sallyport/", env!("CARGO_PKG_VERSION")));
    client.build().map_err(|error| error.to_string())
}

fn tls(is_https: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(match is_https {
        true => builder.with_platform_verifier()?.with_no_client_auth(),
        false => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    })
}

/// Fetches the page of a project; `None` when the index has no such project.
pub(crate) async fn page(client: &Client, url: Url) -> Result<Option<Page>, PackageError> {
    let request = client.get(url).header(header::ACCEPT, PAGE_FORMS);
    let Some(response) = answered(request.send().await)? else { return Ok(None) };
    let (url, header) = (response.url().clone(), response.headers().get(header::CONTENT_TYPE));
    let media_type = header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let bytes = body(response, PAGE_BYTES_MAX).await?;
    Ok(Some(Page { url, media_type, text: String::from_utf8_lossy(&bytes).into_owned() }))
}

/// Fetches a wheel; `None` when it is not there.
pub(crate) async fn wheel(client: &Client, url: Url) -> Result<Option<Vec<u8>>, PackageError> {
    match answered(client.get(url).send().await)? {
        Some(response) => body(response, WHEEL_BYTES_MAX).await.map(Some),
        None => Ok(None),
    }
}

fn answered(result: Result<Response, reqwest::Error>) -> Result<Option<Response>, PackageError> {
    let response = result.map_err(|error| lost(&error))?;
    match response.status() {
        StatusCode::OK => Ok(Some(response)),
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
        status => Err(unavailable(&format!("it answered {status}"))),
    }
}

async fn body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, PackageError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(unavailable(&format!("it sent more than {} MiB", bytes_max >> 20)));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// A guest is told what happened, not where: the address may hold a password of the operator.
fn lost(error: &reqwest::Error) -> PackageError {
    unavailable(match error {
        _ if error.is_timeout() => "it did not answer in time",
        _ if error.is_connect() => "it cannot be reached",
        _ if error.is_redirect() => "it leads elsewhere",
        _ => "the connection broke",
    })
}

pub(crate) fn unavailable(why: &str) -> PackageError {
    PackageError::Unavailable(format!("the package index cannot be used: {why}"))
}
