//! The HTTP client: requests to one server, and bodies with limits on length and silence.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use reqwest::{Client, Response, redirect};
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_platform_verifier::BuilderVerifierExt;

/// Longest wait for a connection. A server that takes longer is treated as unreachable.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// Longest silence within an answer. Models think for minutes without output, but a dead connection
/// stays silent forever.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(180);

/// Why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    /// The connection failed.
    #[error("{0}")]
    Cut(String),
    /// The server stopped sending.
    #[error("nothing came for {time:?}")]
    Silent {
        /// How long nothing arrived.
        time: Duration,
    },
    /// The body is too long.
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit, in bytes.
        bytes_max: usize,
    },
}

/// Builds a client that connects only to the named server: it ignores proxy variables and follows
/// no redirects.
pub(crate) fn build_client(https: bool) -> Result<Client, String> {
    let tls = tls_config(https).map_err(|e| format!("cannot set up TLS: {e}"))?;
    Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIME_MAX)
        .user_agent(concat!("sallyport/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| error_chain(&e))
}

/// Returns the TLS configuration. The system's certificates are read for https only, because
/// reading them takes time and can fail. A client for plain http trusts no certificate.
fn tls_config(https: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(if https {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    })
}

/// Returns the body piece by piece: at most `bytes_max` bytes, and never a long silence.
pub(crate) fn body_pieces(
    response: Response,
    bytes_max: usize,
) -> impl Stream<Item = Result<Bytes, ResponseBodyError>> {
    stream::try_unfold((response, bytes_max), move |(mut response, left)| async move {
        let chunk = tokio::time::timeout(SILENCE_TIME_MAX, response.chunk());
        let chunk =
            chunk.await.map_err(|_| ResponseBodyError::Silent { time: SILENCE_TIME_MAX })?;
        let Some(chunk) = chunk.map_err(|e| ResponseBodyError::Cut(error_chain(&e)))? else {
            return Ok(None);
        };
        let left = left.checked_sub(chunk.len()).ok_or(ResponseBodyError::TooLong { bytes_max })?;
        Ok(Some((chunk, (response, left))))
    })
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn read_body(
    response: Response,
    bytes_max: usize,
) -> Result<Vec<u8>, ResponseBodyError> {
    let join = |mut all: Vec<u8>, piece: Bytes| async move {
        all.extend_from_slice(&piece);
        Ok(all)
    };
    body_pieces(response, bytes_max).try_fold(Vec::new(), join).await
}

/// Returns an error with its causes on one line. The last cause helps users most.
pub(crate) fn error_chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&words);
        }
        cause = error.source();
    }
    if text.is_empty() { "the connection failed".to_owned() } else { text }
}
