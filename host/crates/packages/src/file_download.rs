//! Downloads of one file from an address that the operator names, such as a plugin's component.
//!
//! The address is the operator's own choice, yet it may come from a page that somebody else wrote.
//! So a name that resolves to the private network is refused unless the operator allows it, also
//! after a redirect, and the connection goes to the address that was checked.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::{Client, Response, StatusCode, redirect};
use sallyport_http_client::{
    AddressCheck, AddressRefused, client_builder, error_and_causes, read_body, refused_address,
};
use thiserror::Error as ThisError;
use url::{Host, Url};

use crate::download::REDIRECTS_MAX;

/// Maximum time of a whole download. A component of 64 MiB takes as long on a slow line.
const DOWNLOAD_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// Maximum wait for the next part of a file. A server that sends nothing for longer is gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What a download may do.
#[derive(Debug, Clone, Copy)]
pub struct DownloadRules {
    /// Maximum size of the file, in bytes.
    pub bytes_max: u64,
    /// Whether an address belongs to the public internet.
    pub is_public: fn(IpAddr) -> bool,
    /// Whether addresses of the private network are allowed, and `http` on this machine.
    pub allows_private: bool,
}

/// Why a file was not downloaded.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum DownloadError {
    /// The text is not an address that is downloaded from.
    #[error("{0} is not an address of a file: it has to begin with https:// and name a server")]
    Address(String),
    /// The server is on the private network.
    #[error("{0} is on the private network")]
    Private(String),
    /// The server has no such file, or does not give it.
    #[error("{server} answered {status}")]
    Status {
        /// The server.
        server: String,
        /// The status of its response.
        status: String,
    },
    /// The file is larger than allowed.
    #[error("the file is larger than {0} MiB")]
    TooLarge(u64),
    /// The connection failed.
    #[error("cannot download from {server}: {reason}")]
    Connection {
        /// The server.
        server: String,
        /// What went wrong.
        reason: String,
    },
}

/// Downloads a file into memory. Redirects are followed, from `https` only to `https`.
///
/// # Errors
///
/// The address is not allowed, the server cannot be reached or does not give the file, or the file
/// is too large.
pub async fn download_file(address: &str, rules: DownloadRules) -> Result<Vec<u8>, DownloadError> {
    let url = check_address(address, rules)?;
    let server = url.host_str().unwrap_or_default().to_owned();
    let failed = |error: &reqwest::Error| match refused_address(error) {
        Some(_) => DownloadError::Private(server.clone()),
        None => {
            DownloadError::Connection { server: server.clone(), reason: innermost_reason(error) }
        }
    };
    let client = build_client(url.scheme() == "https", rules)
        .map_err(|reason| DownloadError::Connection { server: server.clone(), reason })?;
    let response = client.get(url).send().await.map_err(|error| failed(&error))?;
    if response.status() != StatusCode::OK {
        let status = response.status().to_string();
        return Err(DownloadError::Status { server: server.clone(), status });
    }
    read_file(response, rules.bytes_max, failed).await
}

/// The address as a URL, if a download may begin there.
fn check_address(address: &str, rules: DownloadRules) -> Result<Url, DownloadError> {
    let shown = || DownloadError::Address(address.chars().take(200).collect());
    let url = Url::parse(address).map_err(|_| shown())?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    if !is_plain || !url.has_host() || !matches!(url.scheme(), "https" | "http") {
        return Err(shown());
    }
    let is_open = url.scheme() == "http";
    match is_private_literal(&url, rules.is_public) {
        true if !rules.allows_private => {
            Err(DownloadError::Private(url.host_str().unwrap_or_default().to_owned()))
        }
        _ if is_open && !(rules.allows_private && is_this_machine(&url)) => Err(shown()),
        _ => Ok(url),
    }
}

/// Whether the URL names an address that is not public. Names are judged when they are resolved.
fn is_private_literal(url: &Url, is_public: fn(IpAddr) -> bool) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => true,
    }
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn build_client(is_https: bool, rules: DownloadRules) -> Result<Client, String> {
    let onwards = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS_MAX {
            return attempt.error("it redirects too often");
        }
        if is_https && attempt.url().scheme() != "https" {
            return attempt.error("it redirects away from https");
        }
        if !rules.allows_private && is_private_literal(attempt.url(), rules.is_public) {
            let host = attempt.url().host_str().unwrap_or_default().to_owned();
            return attempt.error(AddressRefused(host));
        }
        attempt.follow()
    });
    let check =
        AddressCheck::new(move |_, address| rules.allows_private || (rules.is_public)(address));
    let builder = client_builder(is_https).map_err(|error| error.to_string())?;
    let builder = builder
        .redirect(onwards)
        .dns_resolver(Arc::new(check))
        .read_timeout(SILENCE_MAX)
        .timeout(DOWNLOAD_TIME_MAX);
    builder.build().map_err(|error| error.to_string())
}

async fn read_file(
    response: Response,
    bytes_max: u64,
    failed: impl Fn(&reqwest::Error) -> DownloadError,
) -> Result<Vec<u8>, DownloadError> {
    let too_large = DownloadError::TooLarge(bytes_max >> 20);
    if response.content_length().is_some_and(|length| length > bytes_max) {
        return Err(too_large);
    }
    let body = read_body(response, usize::try_from(bytes_max).unwrap_or(usize::MAX)).await;
    body.map_err(|error| failed(&error))?.ok_or(too_large)
}

/// The last cause of an error, which says what happened. The outer ones repeat the address.
fn innermost_reason(error: &reqwest::Error) -> String {
    error_and_causes(error).last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allows_private: bool) -> DownloadRules {
        let is_public = |address: IpAddr| !address.is_loopback();
        DownloadRules { bytes_max: 10, is_public, allows_private }
    }

    #[test]
    fn an_address_is_checked_before_anything_is_sent() {
        let check = |address: &str, allows_private: bool, want: Option<&str>| {
            let error = check_address(address, rules(allows_private)).err();
            let error = error.map(|error| error.to_string());
            let fits = match (&error, want) {
                (Some(error), Some(want)) => error.contains(want),
                (None, None) => true,
                _ => false,
            };
            assert!(fits, "{address}: {error:?}");
        };
        check("https://example.com/x.wasm", false, None);
        check("https://example.com:8443/x.wasm?y", false, None);
        check("https://127.0.0.1/x", true, None);
        check("http://127.0.0.1:80/x", true, None);
        check("http://localhost:80/x", true, None);
        check("http://127.0.0.1/x", false, Some("private network"));
        check("https://localhost/x", false, Some("private network"));
        check("https://[::1]/x", false, Some("private network"));
        for wrong in [
            "http://example.com/x",
            "ftp://example.com/x",
            "file:///etc/passwd",
            "https://user@example.com/x",
            "https://",
            "x",
        ] {
            check(wrong, false, Some("is not an address of a file"));
            check(wrong, true, Some("is not an address of a file"));
        }
    }
}
