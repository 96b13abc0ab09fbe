//! The certificate of the page, which is made when the page begins and forgotten with it.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime},
};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use sallyport_http_server::ServerTls;
use sha2::{Digest, Sha256};

/// How far clocks may differ.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(60 * 60);

/// How long the certificate is valid. A chat seldom lasts so long.
const VALID_TIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It could not be made.
    #[error("no certificate could be made: {0}")]
    Making(#[from] rcgen::Error),
    /// It cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate for one address.
pub(crate) struct PageCertificate {
    pub(crate) tls: ServerTls,
    /// SHA-256 of the certificate, as browsers show it: pairs of hexadecimal digits and colons.
    pub(crate) fingerprint: String,
}

impl PageCertificate {
    pub(crate) fn for_address(address: IpAddr) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new([address.to_string()])?;
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "Sallyport approvals");
        params.distinguished_name = name;
        let now = SystemTime::now();
        params.not_before = (now - CLOCK_DIFFERENCE_MAX).into();
        params.not_after = (now + VALID_TIME).into();
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.der().clone();
        let fingerprint = fingerprint(&certificate);
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Ok(Self { tls: ServerTls::new(vec![certificate], key)?, fingerprint })
    }
}

fn fingerprint(certificate: &[u8]) -> String {
    let pairs =
        Sha256::digest(certificate).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>();
    pairs.join(":")
}
