//! Connections of the page: a few of them, each with a time for everything that it waits for.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

/// Most connections at the same time. A browser opens a handful.
const CONNECTIONS_MAX: usize = 32;

/// Longest time until a connection is encrypted.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time for the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time for everything on one connection. A browser opens a new one.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(120);

/// Longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The pause after a connection that could not be accepted, which happens when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address of the one who asks, in the extensions of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserAddress(pub(crate) SocketAddr);

/// Accepts connections and serves them, without end. Dropping the future closes all of them.
pub(crate) async fn serve_connections(listener: &TcpListener, tls: TlsAcceptor, router: Router) {
    let tls = Arc::new(tls);
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                while connections.try_join_next().is_some() {}
                // One too many is closed.
                if connections.len() < CONNECTIONS_MAX {
                    let served = serve_connection(Arc::clone(&tls), router.clone(), stream, peer);
                    connections.spawn(timeout(CONNECTION_TIME_MAX, served));
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection(
    tls: Arc<TlsAcceptor>,
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)).await else { return };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_buf_size(HEAD_BYTES_MAX);
    let answer = service_fn(move |request: Request<Incoming>| {
        // A router is always ready.
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(BrowserAddress(peer));
        async move { router.call(request).await }
    });
    let connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
    // A browser that breaks the connection has ended it, and nothing else.
    let _ = connection.await;
}
