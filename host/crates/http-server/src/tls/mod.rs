//! TLS of the host's servers: one certificate, which can be renewed while connections are open.

mod files;
mod renewal;
mod validity;

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_rustls::TlsAcceptor;

pub use self::{
    files::{CertificateFileError, CertificateFiles, CertificatePart, FileProblem},
    renewal::{CertificateNews, RenewedCertificate},
    validity::CertificateLife,
};

/// The only protocol that the servers speak inside of TLS.
const ALPN_PROTOCOL: &[u8] = b"http/1.1";

/// The certificate that a server shows at this moment.
#[derive(Debug)]
struct ShownCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The server's side of TLS 1.2 and 1.3, with one certificate.
#[derive(Debug, Clone)]
pub struct ServerTls {
    shown: Arc<ShownCertificate>,
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// TLS with a chain of certificates, the server's own first, and its key.
    ///
    /// # Errors
    ///
    /// The chain is empty, the key is of a kind that is not known, or they do not belong together.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        Self::with_key(certified_key(chain, key)?)
    }

    fn with_key(key: CertifiedKey) -> Result<Self, rustls::Error> {
        let shown = Arc::new(ShownCertificate(ArcSwap::from_pointee(key)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as _);
        config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        Ok(Self { shown, config: Arc::new(config) })
    }

    /// Shows another certificate from the next connection on.
    fn show(&self, key: CertifiedKey) {
        self.shown.0.store(Arc::new(key));
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, rustls::Error> {
    if chain.is_empty() {
        return Err(rustls::Error::NoCertificatesPresented);
    }
    CertifiedKey::from_der(chain, key, &ring::default_provider())
}
