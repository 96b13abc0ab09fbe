//! The page: where it is, and how long it is served.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use sallyport_contract::LOCAL_USER;
use sallyport_http_server::{HttpConnectionLimits, HttpConnections};
use sallyport_store::QuestionStore;
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::{
    access::PageAccess,
    certificate::{CertificateError, PageCertificate},
    routes::{ApprovalPageState, BrowserAddress, page_router},
};

/// A browser opens a handful of connections, and new ones when they have ended.
const CONNECTION_LIMITS: HttpConnectionLimits = HttpConnectionLimits {
    count_max: 32,
    head_bytes_max: 16 << 10,
    time_max: Some(Duration::from_secs(120)),
};

/// An address that is reserved for documents. No packet is sent to it: the system only says from
/// which of its addresses it would send one.
const FAR_ADDRESS: (&str, u16) = ("192.0.2.1", 9);

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// This machine is in no network.
    #[error("this machine has no address that a phone could reach: {0}")]
    NoNetwork(#[source] io::Error),
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: IpAddr,
        /// The reason.
        source: io::Error,
    },
    /// The system gives no random bytes for a link.
    #[error("no link could be made: {0}")]
    Link(#[source] io::Error),
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A page that waits for the browser of its user.
pub struct ApprovalPage {
    listener: TcpListener,
    address: SocketAddr,
    certificate: PageCertificate,
    state: ApprovalPageState,
}

impl ApprovalPage {
    /// Opens a page for the questions of the user at this machine, at an address of this machine, or
    /// at the one that the local network knows. `link_opened` is called when a browser takes the page.
    ///
    /// # Errors
    ///
    /// There is no such address, or no certificate can be made.
    pub async fn open(
        address: Option<IpAddr>,
        questions: Arc<dyn QuestionStore>,
        link_opened: impl Fn(IpAddr) + Send + Sync + 'static,
    ) -> Result<Self, PageError> {
        let address = match address {
            Some(address) => address,
            None => local_address().await.map_err(PageError::NoNetwork)?,
        };
        let failed = |source| PageError::Listen { address, source };
        let listener = TcpListener::bind((address, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let state = ApprovalPageState {
            access: PageAccess::new().map_err(PageError::Link)?,
            questions,
            user: LOCAL_USER.to_owned(),
            authority: address.to_string(),
            link_opened: Box::new(link_opened),
        };
        let certificate = PageCertificate::for_address(address.ip())?;
        Ok(Self { listener, address, certificate, state })
    }

    /// The link, which is secret and works once.
    pub fn link(&self) -> String {
        format!("https://{}/link/{}", self.address, self.state.access.link_key())
    }

    /// SHA-256 of the certificate, as browsers show it.
    pub fn fingerprint(&self) -> &str {
        &self.certificate.fingerprint
    }

    /// Serves the page without end. Dropping the future ends it.
    pub async fn serve(self) {
        let connections = HttpConnections::new(CONNECTION_LIMITS, CancellationToken::new());
        let router = page_router(self.state);
        let answer = move |request: Request<Incoming>, peer| {
            // A router is always ready.
            let mut router = router.clone();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(BrowserAddress(peer));
            async move { router.call(request).await.unwrap_or_else(|never| match never {}) }
        };
        connections.with_tls(&self.certificate.tls).accept(&self.listener, answer).await;
    }
}

/// The address of this machine from which it reaches others.
async fn local_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).await?;
    socket.connect(FAR_ADDRESS).await?;
    Ok(socket.local_addr()?.ip())
}
