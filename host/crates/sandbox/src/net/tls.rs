//! TLS for outgoing requests: the system's certificates, the host's own name, nothing to switch off.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rustls::{ClientConfig, crypto::ring, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use wasmtime_wasi_http::Error;

/// Longest wait for a server to agree on keys.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// The settings, made at the first request: reading the system's certificates takes its time, and
/// most calls never need them.
#[derive(Debug, Default)]
pub(crate) struct Tls(OnceLock<Arc<ClientConfig>>);

impl Tls {
    fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(config) = self.0.get() {
            return Ok(Arc::clone(config));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        Ok(Arc::clone(self.0.get_or_init(|| Arc::new(config))))
    }

    /// Speaks TLS over a connection, with the name that the URL has.
    pub(super) async fn wrap(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let config = self.config().map_err(|_| Error::ConfigurationError)?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|_| Error::TlsCertificateError)?;
        let greeting = TlsConnector::from(config).connect(name, stream);
        match tokio::time::timeout(HANDSHAKE_TIME_MAX, greeting).await {
            Ok(stream) => stream.map_err(tls_error),
            Err(_) => Err(Error::ConnectionTimeout),
        }
    }
}

fn tls_error(error: std::io::Error) -> Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => Error::TlsCertificateError,
        Some(_) => Error::TlsProtocolError,
        None => Error::Tls(error),
    }
}
