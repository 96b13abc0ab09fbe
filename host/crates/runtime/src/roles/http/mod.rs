//! The host's own HTTP server: the addresses that the policy grants, and who may speak to them.
//!
//! One server listens at each address and shares it out to plugins by path. Before anything reaches
//! a plugin it has passed, in this order:
//!
//! 1. `connections`: there is room, for which connections without a key make way.
//! 2. `head`: the head is there in time, and has one reading. A connection carries one request.
//! 3. `check`: the request was meant for this very address (`Host`), no page of another site sent
//!    it (`Origin`), and its path means the same to everybody. A page in the user's browser can reach
//!    the loopback too, so an address alone protects nothing.
//! 4. `route`: the longest granted path that the request's lies below; whoever sends it
//!    knows the `key` of whoever serves that.
//! 5. `rate`: not too many a second.
//! 6. `answer`: the body is whole, and not too long. Only then does the request take a place among
//!    those that are answered at the same time.
//!
//! The credentials end here: no plugin sees them.

mod answer;
mod check;
mod connections;
mod head;
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
    HeaderMap, Request, Response, StatusCode, Uri, server::conn::http1, service::service_fn,
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
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

use check::{Refusal, refusal};
use connections::{KnownPeer, OpenConnections};
use head::{HEAD_BYTES_MAX, HeadError};
use key::Pass;
pub use key::{Holder, Key};
pub use page::{Looks, PluginPage};
use patient::Patient;
pub use rate::Bucket;
use rate::Rate;

/// Longest wait for a whole head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Most lines of a head.
const HEADERS_MAX: usize = 64;

/// The pause after a connection could not be taken: the process has too many files open, and those
/// that end make room.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Longest wait until somebody who is turned away has taken the reason, and has stopped sending.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);

/// Connections that are turned away at a time; what is beyond is cut off without a word.
const FAREWELLS_MAX: usize = 64;

const NO_ROOM: Refusal = refusal(StatusCode::SERVICE_UNAVAILABLE, "there are too many connections");
const NO_HEAD: Refusal = refusal(StatusCode::REQUEST_TIMEOUT, "the head did not come in time");

/// A connection that has become a web socket.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers the requests below one path.
pub trait Page: Send + Sync {
    /// Answers a request. It has passed every check; its body is whole.
    fn answer(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response<HttpBody>>;
}

/// Takes the web sockets of one path.
pub trait Talk: Send + Sync {
    /// Speaks with whoever has connected, to the end.
    fn speak(&self, socket: Socket, peer: SocketAddr) -> BoxFuture<'static, ()>;
}

/// Who serves a path.
#[derive(Clone)]
pub enum Target {
    /// Requests.
    Page(Arc<dyn Page>),
    /// Web sockets.
    Talk(Arc<dyn Talk>),
}

/// A path and who serves it.
#[derive(Clone)]
pub struct Route {
    /// Host, port and path.
    pub address: ListenAddress,
    /// Who answers there.
    pub target: Target,
    /// What opens it.
    pub key: Arc<Key>,
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
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
}

impl Server {
    /// Takes an address. All routes are of this address.
    ///
    /// # Errors
    ///
    /// The address is in use, or is not of this machine.
    pub async fn bind(addr: SocketAddr, routes: Vec<Route>) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let public = routes.iter().any(|route| route.address.public);
        let (rate, talks) = (Rate::default(), std::sync::Mutex::default());
        Ok(Self { listener, site: Arc::new(Site { addr, public, routes, rate, talks }) })
    }

    /// The address, with the port that it has.
    pub fn addr(&self) -> SocketAddr {
        self.site.addr
    }

    /// Serves until the future is dropped, which ends every connection.
    pub async fn run(self) {
        let farewells = Arc::new(Semaphore::new(FAREWELLS_MAX));
        let (mut tasks, mut open) = (JoinSet::new(), OpenConnections::default());
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) if open.make_room() => {
                        let known = KnownPeer::default();
                        let connection = serve(stream, peer, Arc::clone(&self.site), known.clone());
                        open.add(tasks.spawn(connection), known);
                    }
                    Ok((stream, _)) => {
                        if let Ok(place) = Arc::clone(&farewells).try_acquire_owned() {
                            tasks.spawn(async move {
                                let _place = place;
                                turn_away(stream, NO_ROOM).await;
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

/// Says why nothing is read on, and closes. What still comes is read for a moment, because a
/// connection that is closed with something unread takes back what was sent last.
async fn turn_away(mut stream: TcpStream, Refusal { status, words }: Refusal) {
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{words}\n",
        words.len() + 1
    );
    let parting = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // Whoever does not read it is not told.
    let _ = tokio::time::timeout(FAREWELL_TIME_MAX, parting).await;
}

async fn serve(mut stream: TcpStream, peer: SocketAddr, site: Arc<Site>, known: KnownPeer) {
    let ahead = match tokio::time::timeout(HEAD_TIME_MAX, head::read(&mut stream)).await {
        Ok(Ok(ahead)) => ahead,
        Ok(Err(HeadError::Gone)) => return,
        Ok(Err(HeadError::Refused(refusal))) => return turn_away(stream, refusal).await,
        Err(_) => return turn_away(stream, NO_HEAD).await,
    };
    let service = service_fn(move |request| {
        let (site, known) = (Arc::clone(&site), known.clone());
        async move { Ok::<_, Infallible>(answer::answer(&site, peer, &known, request).await) }
    });
    let mut http = http1::Builder::new();
    // Every answer but that of a web socket closes the connection; see `answer`.
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let io = TokioIo::new(Patient::new(stream, ahead));
    // A connection that breaks concerns nobody but whoever made it.
    let _ = http.serve_connection(io, service).with_upgrades().await;
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
