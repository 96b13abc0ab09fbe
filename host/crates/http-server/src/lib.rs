//! Connections of the host's HTTP servers: a bounded number of them, each with a time for everything
//! that it waits for. What the requests mean is up to the servers.

mod descriptors;
mod tls;
mod websocket;

use std::{
    convert::Infallible,
    error::Error,
    future::Future,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use descriptors::raise_descriptor_limit;
pub use tls::{
    CertificateFileError, CertificateFiles, CertificateLife, CertificateNews, CertificatePart,
    FileProblem, RenewedCertificate, ServerTls,
};
pub use websocket::{HandshakeError, answer_handshake, single_header_value};

/// Longest time until a connection is encrypted.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time for the head of a request, also on a connection that has been used before.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for a client to take some bytes of an answer.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);

/// The pause after a connection that could not be accepted, which happens when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the connections of one server may take.
#[derive(Debug, Clone, Copy)]
pub struct HttpConnectionLimits {
    /// Most connections at the same time; fewer if the system allows too few descriptors. One too
    /// many is closed.
    pub count_max: usize,
    /// Longest head of a request in bytes, and what is read ahead of a body. The library reads in
    /// growing pieces and looks after each, so it can be up to twice as much.
    pub head_bytes_max: usize,
    /// Longest time for everything on one connection.
    pub time_max: Option<Duration>,
}

/// How many connections a server has, and how many it has refused.
#[derive(Debug)]
pub struct ConnectionCounts {
    limit: usize,
    places: Arc<Semaphore>,
    refused: AtomicU64,
}

impl ConnectionCounts {
    /// The connections at this moment.
    pub fn open(&self) -> usize {
        self.limit - self.places.available_permits()
    }

    /// The connections that were closed because there were too many.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// The connections of one server. Dropping it closes all of them.
pub struct HttpConnections {
    limits: HttpConnectionLimits,
    counts: Arc<ConnectionCounts>,
    tls: Option<TlsAcceptor>,
    closing: CancellationToken,
    tasks: JoinSet<()>,
}

impl HttpConnections {
    /// Has none yet. When `closing` is cancelled, each connection ends after its current answer.
    pub fn new(limits: HttpConnectionLimits, closing: CancellationToken) -> Self {
        let limit = limits.count_max.min(descriptors::room_for_connections());
        let places = Arc::new(Semaphore::new(limit));
        let counts = ConnectionCounts { limit, places, refused: 0.into() };
        Self { limits, counts: Arc::new(counts), tls: None, closing, tasks: JoinSet::new() }
    }

    /// Encrypts the connections.
    #[must_use]
    pub fn with_tls(mut self, tls: &ServerTls) -> Self {
        self.tls = Some(tls.acceptor());
        self
    }

    /// The counts, also while connections are accepted.
    pub fn counts(&self) -> Arc<ConnectionCounts> {
        Arc::clone(&self.counts)
    }

    /// Accepts connections without end. `answer` gets each request with the address of its sender.
    pub async fn accept<A, F, B>(&mut self, listener: &TcpListener, answer: A)
    where
        A: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            while self.tasks.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&self.counts.places).try_acquire_owned() else {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let answer = answer.clone();
            let connection = HttpConnection {
                head_bytes_max: self.limits.head_bytes_max,
                tls: self.tls.clone(),
                closing: self.closing.clone(),
                _place: place,
            };
            let served = connection.serve(stream, move |request| answer(request, peer));
            match self.limits.time_max {
                Some(time) => self.tasks.spawn(async move { drop(timeout(time, served).await) }),
                None => self.tasks.spawn(served),
            };
        }
    }

    /// Waits until the clients have their last answers, at most this long, and closes what is left.
    pub async fn end(mut self, time_max: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // Those that take longer are closed with the set.
        let _ = timeout(time_max, all).await;
        self.tasks.shutdown().await;
    }
}

/// One connection.
struct HttpConnection {
    head_bytes_max: usize,
    tls: Option<TlsAcceptor>,
    closing: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl HttpConnection {
    async fn serve<A, F, B>(self, stream: TcpStream, answer: A)
    where
        A: Fn(Request<Incoming>) -> F + Send + Sync,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        // Small events must not wait for one another. It fails only on a connection that is broken.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.serve_stream(stream, answer).await };
        if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)).await {
            self.serve_stream(stream, answer).await;
        }
    }

    async fn serve_stream<S, A, F, B>(&self, stream: S, answer: A)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
        A: Fn(Request<Incoming>) -> F + Send + Sync,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_TIME_MAX));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_buf_size(self.head_bytes_max);
        let answer = service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        let io = TokioIo::new(Box::pin(stream));
        let mut connection = pin!(http.serve_connection(io, answer).with_upgrades());
        // A client that breaks the connection has ended it, and nothing else.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}
