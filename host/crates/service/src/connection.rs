//! Connections: a bounded number of them, each with a time for everything that it waits for.

use std::{pin::pin, sync::Arc, sync::atomic::Ordering, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::OwnedSemaphorePermit,
    task::JoinSet,
};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service as _;

use crate::{console::PeerAddress, server::Service};

/// Most connections at the same time: the streams and requests of all users, with room to spare.
pub(crate) const SOCKETS_MAX: usize = 1024;

/// Longest time for the head of a request, also on a connection that has been used before.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest head of a request in bytes, and what is read ahead of a body. The library reads in growing
/// pieces and looks after each, so it can be up to twice as much.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Longest wait for a client to take some bytes of an answer.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);

/// The pause after a connection that could not be accepted, which happens when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Longest wait at the end for clients to take their last answers.
const LAST_ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Accepts connections and serves them.
pub(crate) struct Acceptor {
    service: Arc<Service>,
    router: Router,
    connections: JoinSet<()>,
}

impl Acceptor {
    pub(crate) fn new(service: Arc<Service>, router: Router) -> Self {
        Self { service, router, connections: JoinSet::new() }
    }

    /// Accepts connections without end.
    pub(crate) async fn accept_connections(&mut self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.accept(stream, PeerAddress(peer.ip())),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn accept(&mut self, stream: TcpStream, peer: PeerAddress) {
        while self.connections.try_join_next().is_some() {}
        match Arc::clone(&self.service.sockets).try_acquire_owned() {
            Ok(place) => {
                let (service, router) = (Arc::clone(&self.service), self.router.clone());
                self.connections.spawn(serve_connection(service, router, (stream, peer), place));
            }
            // One too many is closed.
            Err(_) => drop(self.service.metrics.sockets_refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Waits until the clients have their last answers, and closes what is left.
    pub(crate) async fn end_connections(mut self) {
        let all = async { while self.connections.join_next().await.is_some() {} };
        // Those that take longer are closed with the set.
        let _ = tokio::time::timeout(LAST_ANSWER_TIME_MAX, all).await;
        self.connections.shutdown().await;
    }
}

async fn serve_connection(
    service: Arc<Service>,
    router: Router,
    (stream, peer): (TcpStream, PeerAddress),
    place: OwnedSemaphorePermit,
) {
    // Small events must not wait for one another. It fails only on a connection that is broken.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME_MAX));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_buf_size(HEAD_BYTES_MAX);
    let answer = service_fn(move |request: Request<Incoming>| {
        // A router is always ready.
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        async move { router.call(request).await }
    });
    let io = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(http.serve_connection(io, answer));
    // A client that breaks the connection has ended it, and nothing else.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = service.closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    drop(place);
}
