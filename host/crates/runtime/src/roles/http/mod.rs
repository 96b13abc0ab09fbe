//! The host's own HTTP server: the addresses that the policy grants, and the access checks on them.
//!
//! One server listens at each address and distributes requests to plugins by path. A request
//! reaches a plugin only after these checks, in this order:
//!
//! 1. `connections`: there is room. Connections without a key are dropped to make room.
//! 2. `head`: the head arrives in time and is unambiguous. A connection carries one request.
//! 3. `check`: the request is meant for this very address (`Host`), no page of another site sent it
//!    (`Origin`), and its path is unambiguous. The address alone protects nothing, because any page
//!    in the user's browser can reach the loopback.
//! 4. `route`: the longest granted path that contains the request's path. The sender must know the
//!    `key` of that route.
//! 5. The request is within the limit per second.
//! 6. `dispatch`: the body is complete and within its limit. Only then does the request take one of
//!    the places for concurrent answers.
//!
//! Credentials are removed here, so that no plugin sees them.

mod check;
mod connections;
mod dispatch;
mod head;
mod key;
mod plugin_handler;
#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    io::{self, Cursor},
    net::SocketAddr,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http_body_util::Full;
use hyper::{
    HeaderMap, Request, Response, StatusCode, Uri, server::conn::http1, service::service_fn,
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use sallyport_contract::BoxFuture;
use sallyport_policy::ListenAddress;
use sallyport_sandbox::roles::HttpBody;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, join},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_io_timeout::TimeoutWriter;
use tokio_tungstenite::WebSocketStream;

use check::HttpRefusal;
use connections::{KnownPeer, OpenConnections};
use head::{HEAD_BYTES_MAX, HeadError};
use key::CredentialCheckResult;
pub use key::{AccessKey, AccessKeyHolder};
pub use plugin_handler::{PluginRequestHandler, ReadDecisionCache};

/// Timeout of reading a whole head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Most lines of a head.
const HEADERS_MAX: usize = 64;

/// Pause after a connection could not be accepted. The process has too many open files then, and
/// closing connections free some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Timeout of sending a refusal, and of draining the rest of the request.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

/// Timeout of a write without progress. A client that never reads its response would otherwise keep
/// its place forever.
const WRITE_TIME_MAX: Duration = Duration::from_secs(20);

/// Requests per second on average: a page sends two or three, and a user cannot follow more. The
/// burst after a quiet moment is a page that is opened, or several programs.
const REQUEST_QUOTA: Quota = quota_per_second(50, 200);

/// Most requests that are answered at the same time. Each may keep a plugin in memory.
const CONCURRENT_ANSWERS_MAX: usize = 16;

/// Most bodies that are read at the same time. They may arrive slowly, so they take none of the
/// places for answers.
const CONCURRENT_READS_MAX: usize = 64;

/// Most refusals that are sent at the same time; further connections are dropped without an answer.
const REFUSALS_MAX: usize = 64;

const TOO_MANY_CONNECTIONS: HttpRefusal =
    HttpRefusal(StatusCode::SERVICE_UNAVAILABLE, "there are too many connections");
const HEAD_TIMED_OUT: HttpRefusal =
    HttpRefusal(StatusCode::REQUEST_TIMEOUT, "the head did not come in time");

/// A connection that was upgraded to a WebSocket.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers the requests below one path.
pub trait HttpRequestHandler: Send + Sync {
    /// Answers a request. It has passed every check, and its body is complete.
    fn handle_request(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response<HttpBody>>;
}

/// Handles the WebSockets of one path.
pub trait WebSocketHandler: Send + Sync {
    /// Handles one connection until it ends.
    fn handle_socket(&self, socket: Socket, peer: SocketAddr) -> BoxFuture<'static, ()>;
}

/// The handler of a path.
#[derive(Clone)]
pub enum RouteHandler {
    /// Requests.
    Http(Arc<dyn HttpRequestHandler>),
    /// WebSockets.
    WebSocket(Arc<dyn WebSocketHandler>),
}

/// A path and its handler.
#[derive(Clone)]
pub struct HttpRoute {
    /// Host, port and path.
    pub address: ListenAddress,
    /// The handler.
    pub handler: RouteHandler,
    /// The key that grants access to it.
    pub key: Arc<AccessKey>,
}

/// The routes and limits of one address.
struct HttpSite {
    /// The address, with its actual port.
    addr: SocketAddr,
    public: bool,
    routes: Vec<HttpRoute>,
    rate_limiter: DefaultDirectRateLimiter,
    read_permits: Semaphore,
    answer_permits: Semaphore,
    /// The tasks of the WebSockets; they end with the site.
    socket_tasks: std::sync::Mutex<JoinSet<()>>,
}

/// An address that is bound but not served yet.
pub struct HttpServer {
    listener: TcpListener,
    site: Arc<HttpSite>,
}

impl HttpServer {
    /// Binds an address. All routes must be of this address.
    ///
    /// # Errors
    ///
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(addr: SocketAddr, routes: Vec<HttpRoute>) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let public = routes.iter().any(|route| route.address.public);
        let site = HttpSite {
            addr,
            public,
            routes,
            rate_limiter: RateLimiter::direct(REQUEST_QUOTA),
            read_permits: Semaphore::new(CONCURRENT_READS_MAX),
            answer_permits: Semaphore::new(CONCURRENT_ANSWERS_MAX),
            socket_tasks: std::sync::Mutex::default(),
        };
        Ok(Self { listener, site: Arc::new(site) })
    }

    /// The address, with its actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.site.addr
    }

    /// Serves until the future is dropped, which ends every connection.
    pub async fn run(self) {
        let refusal_permits = Arc::new(Semaphore::new(REFUSALS_MAX));
        let (mut tasks, mut open_connections) = (JoinSet::new(), OpenConnections::default());
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) if open_connections.make_room() => {
                        let known = KnownPeer::default();
                        let connection = serve_connection(stream, peer, Arc::clone(&self.site), known.clone());
                        open_connections.add(tasks.spawn(connection), known);
                    }
                    Ok((stream, _)) => {
                        if let Ok(place) = Arc::clone(&refusal_permits).try_acquire_owned() {
                            tasks.spawn(async move {
                                let _place = place;
                                send_refusal(stream, TOO_MANY_CONNECTIONS).await;
                            });
                        }
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

/// Sends the reason for a refusal, and closes. Drains the request for a moment, because closing a
/// TCP connection with unread data discards what was sent last.
async fn send_refusal(mut stream: TcpStream, HttpRefusal(status, message): HttpRefusal) {
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{message}\n",
        message.len() + 1
    );
    let sending = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // A client that does not read the refusal misses it.
    let _ = tokio::time::timeout(REFUSAL_TIME_MAX, sending).await;
}

async fn serve_connection(
    mut stream: TcpStream,
    peer: SocketAddr,
    site: Arc<HttpSite>,
    known_peer: KnownPeer,
) {
    let buffered = match tokio::time::timeout(HEAD_TIME_MAX, head::read_head(&mut stream)).await {
        Ok(Ok(buffered)) => buffered,
        Ok(Err(HeadError::Disconnected)) => return,
        Ok(Err(HeadError::Refused(refusal))) => return send_refusal(stream, refusal).await,
        Err(_) => return send_refusal(stream, HEAD_TIMED_OUT).await,
    };
    let service = service_fn(move |request| {
        let (site, known_peer) = (Arc::clone(&site), known_peer.clone());
        async move {
            Ok::<_, Infallible>(dispatch::answer_request(&site, peer, &known_peer, request).await)
        }
    });
    let mut http = http1::Builder::new();
    // Every response except that of a WebSocket closes the connection; see `dispatch`.
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let (reader, writer) = stream.into_split();
    let stream = with_write_timeout(join(Cursor::new(buffered).chain(reader), writer));
    // A broken connection affects only its client.
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

fn with_write_timeout<S: AsyncWrite>(stream: S) -> Pin<Box<TimeoutWriter<S>>> {
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(WRITE_TIME_MAX));
    Box::pin(stream)
}

/// A rate on average, and the largest burst after a quiet moment.
pub(super) const fn quota_per_second(count: u32, burst_max: u32) -> Quota {
    let count = NonZeroU32::new(count).expect("a rate is not zero");
    Quota::per_second(count).allow_burst(NonZeroU32::new(burst_max).expect("a burst is not zero"))
}

impl HttpSite {
    /// Evaluates the credentials of a request for the route of its path. Without a route, any key
    /// of this address counts, because only a client with a key may learn that nothing is served
    /// there.
    fn check_credentials(
        &self,
        uri: &Uri,
        is_websocket: bool,
        headers: &HeaderMap,
    ) -> CredentialCheckResult {
        let served_route = self
            .find_route(uri.path(), is_websocket)
            .or_else(|| self.find_route(uri.path(), !is_websocket));
        let routes = served_route.map_or(&self.routes[..], std::slice::from_ref);
        let mut results =
            routes.iter().map(|route| route.key.check_credentials(self.addr, uri, headers));
        results
            .find(|result| *result != CredentialCheckResult::Refused)
            .unwrap_or(CredentialCheckResult::Refused)
    }

    /// The handler of a path: of all matching routes, the one with the longest path.
    fn find_route(&self, path: &str, is_websocket: bool) -> Option<&HttpRoute> {
        let is_match = |route: &&HttpRoute| {
            matches!(route.handler, RouteHandler::WebSocket(_)) == is_websocket
                && route.address.serves_path(path)
        };
        self.routes.iter().filter(is_match).max_by_key(|route| route.address.path.len())
    }
}
