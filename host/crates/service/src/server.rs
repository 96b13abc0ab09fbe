//! Serves users: how the service begins and how it ends.

use std::{future::Future, net::SocketAddr, time::Duration};

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use sallyport_http_server::{HttpConnectionLimits, HttpConnections};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::{
    peer_address::PeerAddress,
    routes::router,
    service::{Service, ServiceParts},
};

/// The streams and requests of all users, with room to spare.
const CONNECTION_LIMITS: HttpConnectionLimits =
    HttpConnectionLimits { count_max: 1024, head_bytes_max: 32 << 10, time_max: None };

/// Longest wait at the end for clients to take their last answers.
const LAST_ANSWERS_TIME_MAX: Duration = Duration::from_secs(5);

/// Serves users until `stop`. It returns when every call has ended and has its record, and every
/// connection is closed.
pub async fn serve(parts: ServiceParts, listener: TcpListener, stop: impl Future<Output = ()>) {
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let closing = CancellationToken::new();
    let mut connections = HttpConnections::new(CONNECTION_LIMITS, closing.clone());
    if let Some(tls) = &parts.tls {
        connections = connections.with_tls(tls);
    }
    let service = Service::new(parts, is_local, closing, connections.counts());
    let router = router(&service);
    let answer = move |request: Request<Incoming>, peer: SocketAddr| {
        // A router is always ready.
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(PeerAddress(peer.ip()));
        async move { router.call(request).await.unwrap_or_else(|never| match never {}) }
    };
    tokio::select! {
        () = connections.accept(&listener, answer) => {}
        () = stop => {}
    }
    drop(listener);
    service.end_work().await;
    service.sockets.close();
    let last_messages = tokio::time::timeout(LAST_ANSWERS_TIME_MAX, service.sockets.wait());
    let _ = tokio::join!(connections.end(LAST_ANSWERS_TIME_MAX), last_messages);
}
