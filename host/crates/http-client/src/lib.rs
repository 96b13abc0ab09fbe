//! The HTTP client for the host's own requests: to models, package indexes, services and servers.
//!
//! [`client_builder`] has what they have in common: TLS with the system's certificates, no proxy of
//! the environment, no redirects. [`AddressCheck`] is for addresses that somebody else may have
//! chosen: it judges each address that a name resolves to, and the judged address is the one that is
//! dialled. Requests of guests do not pass here but through the crate `sandbox`.

mod address_check;

use std::{error::Error, sync::Arc, time::Duration};

use reqwest::{ClientBuilder, Response, redirect};
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_platform_verifier::BuilderVerifierExt;

pub use address_check::{AddressCheck, AddressRefused, refused_address};

/// Longest wait for a connection. A server that takes longer is treated as unreachable.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// Reads the body of an answer. `None` if it is longer than `bytes_max`; the rest of it is not read.
///
/// # Errors
///
/// The connection breaks.
pub async fn read_body(
    mut response: Response,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > bytes_max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// TLS cannot be set up, mostly because the system's certificates cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot set up TLS: {0}")]
pub struct TlsSetupError(String);

/// Why a request to a server failed, without its address, whose query could be private.
pub fn failure_reason(error: &reqwest::Error) -> &'static str {
    match error {
        _ if error.is_timeout() => "it did not answer in time",
        _ if error.is_connect() => "it cannot be reached",
        _ => "the connection broke",
    }
}

/// Begins a client. Without `is_https` it trusts no certificate, because reading the system's
/// certificates takes time and can fail; a request or redirect to https then fails.
///
/// # Errors
///
/// The system's certificates cannot be read.
pub fn client_builder(is_https: bool) -> Result<ClientBuilder, TlsSetupError> {
    let mut tls = tls_config(is_https)?;
    // The client speaks nothing else, so a server need not guess.
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let builder = ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIME_MAX)
        .user_agent(concat!("sallyport/", env!("CARGO_PKG_VERSION")));
    Ok(builder)
}

/// The TLS settings of the host's own connections. Without `is_verifying` they trust no certificate.
///
/// # Errors
///
/// The system's certificates cannot be read.
pub fn tls_config(is_verifying: bool) -> Result<ClientConfig, TlsSetupError> {
    make_tls_config(is_verifying).map_err(|error| TlsSetupError(error.to_string()))
}

fn make_tls_config(is_verifying: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(match is_verifying {
        true => builder.with_platform_verifier()?.with_no_client_auth(),
        false => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    })
}

/// An error, then its cause, and so on.
pub fn error_and_causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The causes of an error on one line. The error itself is left out, because it repeats the address,
/// which can have private parts. The last cause helps users most.
pub fn error_causes(error: &reqwest::Error) -> String {
    let mut text = String::new();
    for cause in error_and_causes(error).skip(1) {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&words);
        }
    }
    if text.is_empty() { "the connection failed".to_owned() } else { text }
}
