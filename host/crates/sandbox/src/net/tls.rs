//! TLS for outgoing requests. It verifies the name in the URL with the system's certificates, and
//! cannot be turned off.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use rustls::{ClientConfig, crypto::ring, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;
use url::{Host, Url};
use wasmtime_wasi_http::Error;

use super::{
    dial::BoxedConnection,
    timeouts::{ExchangeStep, ExchangeTimeouts},
};

/// The only application protocol.
const ALPN_PROTOCOL: &[u8] = b"http/1.1";

/// The configuration, created at the first request: reading the system's certificates is slow, and
/// most calls do not need it.
#[derive(Debug, Default)]
pub(crate) struct TlsClient(OnceLock<Arc<ClientConfig>>);

impl TlsClient {
    fn client_config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(config) = self.0.get() {
            return Ok(Arc::clone(config));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        Ok(Arc::clone(self.0.get_or_init(|| Arc::new(config))))
    }

    /// Wraps a connection in TLS and verifies the name in the URL.
    pub(super) async fn wrap_connection(
        &self,
        timeouts: &ExchangeTimeouts,
        url: &Url,
        transport: BoxedConnection,
    ) -> Result<BoxedConnection, Error> {
        let config = self.client_config().map_err(|_| Error::ConfigurationError)?;
        let handshake = TlsConnector::from(config).connect(server_name(url)?, transport);
        let stream = timeouts
            .wait_for_step(ExchangeStep::TlsHandshake, handshake)
            .await?
            .map_err(convert_tls_error)?;
        Ok(Box::new(stream))
    }
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Error> {
    match url.host().ok_or(Error::HttpRequestUriInvalid)? {
        Host::Domain(name) => {
            ServerName::try_from(name.to_owned()).map_err(|_| Error::TlsCertificateError)
        }
        Host::Ipv4(ip) => Ok(ServerName::from(IpAddr::V4(ip))),
        Host::Ipv6(ip) => Ok(ServerName::from(IpAddr::V6(ip))),
    }
}

fn convert_tls_error(error: std::io::Error) -> Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => Error::TlsCertificateError,
        Some(_) => Error::TlsProtocolError,
        None => Error::Tls(error),
    }
}
