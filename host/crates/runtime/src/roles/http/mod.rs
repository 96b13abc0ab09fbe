//! The host's own HTTP server: the addresses that the policy grants, and who may speak to them.
//!
//! One server listens at each address and shares it out to plugins by path. Before anything reaches
//! a plugin it has passed, in this order:
//!
//! 1. [`check`]: the request was meant for this very address (`Host`), and no page of another site
//!    sent it (`Origin`). A page in the user's browser can reach the loopback too, so an address alone
//!    protects nothing.
//! 2. [`route`](Site::route): the longest granted path that the request's lies below; whoever sends it
//!    knows the [`key`] of whoever serves that.
//! 3. [`rate`]: not too many at once, not too many a second.
//! 4. [`answer`]: the body is whole, and not too long.
//!
//! The credentials end here: no plugin sees them.

mod answer;
mod check;
mod key;
mod page;
mod patient;
mod rate;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Request, Response, Uri, server::conn::http1, service::service_fn, upgrade::Upgraded,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use sallyport_contract::BoxFuture;
use sallyport_policy::ListenAddress;
use sallyport_sandbox::roles::HttpBody;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_tungstenite::WebSocketStream;

use key::Pass;
pub(crate) use key::{Holder, Key};
pub(crate) use page::{Looks, PluginPage};
use patient::Patient;
pub(crate) use rate::Bucket;
use rate::Rate;

/// Most connections at one address at a time. A browser opens six; the rest is for programs.
const CONNECTIONS_MAX: usize = 64;

/// Longest wait for a whole head, and for the next request on a connection that stays open.
const HEAD_TIME_MAX: Duration = Duration::from_secs(20);

/// Most bytes of a head: browsers send two to four thousand.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Most lines of a head.
const HEADERS_MAX: usize = 64;

/// The pause after a connection could not be taken: the process has too many files open, and those
/// that end make room.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What somebody is told when there is no room for another connection.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    content-length: 31\r\nconnection: close\r\n\r\nthere are too many connections\n";

/// A connection that has become a web socket.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers the requests below one path.
pub(crate) trait Page: Send + Sync {
    /// Answers a request. It has passed every check; its body is whole.
    fn answer(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response<HttpBody>>;
}

/// Takes the web sockets of one path.
pub(crate) trait Talk: Send + Sync {
    /// Speaks with whoever has connected, to the end.
    fn speak(&self, socket: Socket, peer: SocketAddr) -> BoxFuture<'static, ()>;
}

/// Who serves a path.
#[derive(Clone)]
pub(crate) enum Target {
    /// Requests.
    Page(Arc<dyn Page>),
    /// Web sockets.
    Talk(Arc<dyn Talk>),
}

/// A path and who serves it.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) address: ListenAddress,
    pub(crate) target: Target,
    /// What opens it.
    pub(crate) key: Arc<Key>,
}

/// What is served at one address.
struct Site {
    /// The address, with the port that it has.
    addr: SocketAddr,
    public: bool,
    routes: Vec<Route>,
    rate: Rate,
    /// Connections that became web sockets; they end with the site.
    talks: std::sync::Mutex<JoinSet<()>>,
}

/// An address that is taken, and not served yet.
pub(crate) struct Server {
    listener: TcpListener,
    site: Arc<Site>,
}

impl Server {
    /// Takes an address. All routes are of this address.
    ///
    /// # Errors
    ///
    /// The address is in use, or is not of this machine.
    pub(crate) async fn bind(addr: SocketAddr, routes: Vec<Route>) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let public = routes.iter().any(|route| route.address.public);
        let (rate, talks) = (Rate::default(), std::sync::Mutex::default());
        Ok(Self { listener, site: Arc::new(Site { addr, public, routes, rate, talks }) })
    }

    /// The address, with the port that it has.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.site.addr
    }

    /// Serves until the future is dropped, which ends every connection.
    pub(crate) async fn run(self) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let site = Arc::clone(&self.site);
                        match Arc::clone(&places).try_acquire_owned() {
                            Ok(place) => drop(connections.spawn(async move {
                                let _place = place;
                                serve(stream, peer, site).await;
                            })),
                            Err(_) => drop(connections.spawn(turn_away(stream))),
                        }
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn turn_away(mut stream: TcpStream) {
    // Whoever does not read it is not told.
    let _ = tokio::time::timeout(ACCEPT_PAUSE, stream.write_all(NO_ROOM)).await;
}

async fn serve(stream: TcpStream, peer: SocketAddr, site: Arc<Site>) {
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(answer::answer(&site, peer, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    // A connection that breaks concerns nobody but whoever made it.
    let _ =
        http.serve_connection(TokioIo::new(Patient::new(stream)), service).with_upgrades().await;
}

impl Site {
    /// What the credentials of a request amount to for whoever serves its path; where nobody does,
    /// for anyone here, since only who may speak to somebody is told that nobody is there.
    fn look(&self, uri: &Uri, is_talk: bool, headers: &HeaderMap) -> Pass {
        let served = self.route(uri.path(), is_talk).or_else(|| self.route(uri.path(), !is_talk));
        let routes = served.map_or(&self.routes[..], std::slice::from_ref);
        let mut passes = routes.iter().map(|route| route.key.look(self.addr, uri, headers));
        passes.find(|pass| *pass != Pass::Unknown).unwrap_or(Pass::Unknown)
    }

    /// Who serves a path: of all that do, the one that names most of it.
    fn route(&self, path: &str, is_talk: bool) -> Option<&Route> {
        let fits = |route: &&Route| {
            matches!(route.target, Target::Talk(_)) == is_talk && route.address.serves(path)
        };
        self.routes.iter().filter(fits).max_by_key(|route| route.address.path.len())
    }
}
